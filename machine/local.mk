hetcoll_sources += \
	machine/assumed.h machine/assumed.cc \
	machine/cluster.h machine/cluster.cc \
	machine/cpu_limits.h \
	machine/fingerprint.h machine/fingerprint.cc \
	machine/links.h \
	machine/node_slices.h machine/node_slices.cc \
	machine/placed.h machine/placed.cc \
	machine/platform.h \
	machine/query.h \
	machine/rank_rings.h machine/rank_rings.cc \
	machine/rank_shares.h machine/rank_shares.cc \
	machine/rank_trees.h machine/rank_trees.cc \
	machine/ranks.h machine/ranks.cc \
	machine/routes.h machine/routes.cc \
	machine/build_platform.h machine/build_platform.cc \
	machine/topology_links.h machine/topology_links.cc

hetcoll_tools_sources += \
	machine/cpu_limits.cc \
	machine/on_nodes.cc
