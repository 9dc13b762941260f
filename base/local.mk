hetcoll_sources += \
	base/algorithm_list.h \
	base/counted.h \
	base/element.h base/element.cc \
	base/file_mark.h base/file_mark.cc \
	base/float_control.h \
	base/hash.h \
	base/installed.h base/installed.cc \
	base/library.h \
	base/log.h base/log.cc \
	base/lost.h \
	base/node_ranks.h \
	base/own_user.h base/own_user.cc \
	base/p2p.h \
	base/padding.h base/padding.cc \
	base/request_pool.h \
	base/slots.h \
	base/spare_memory.h \
	base/status.h base/status.cc

# Where make install puts things, for the one file that has to know. The component's folder is named so in a build of
# its own, or so in Open MPI's tree.
base/installed.lo: AM_CPPFLAGS += -DHETCOLL_CONFIG_FOLDER='"$(sysconfdir)/hetcoll"' \
	-DHETCOLL_COMPONENT_FOLDER='"$(componentdir)$(mcacomponentdir)"'
