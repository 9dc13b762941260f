# What is installed beside programs and libraries: for people, for other build systems, for the system's services.
EXTRA_DIST += share/common.h2m share/hetcoll_aggregator.h2m share/hetcoll_bench.h2m share/hetcoll_info.h2m \
	share/hetcoll_place.h2m share/hetcoll_sim.h2m share/hetcoll_tune.h2m share/hetcoll.7 \
	share/hetcoll_stream.pc.in share/hetcoll_types.pc.in share/hetcoll_wsp.pc.in share/hetcoll-config.cmake.in \
	share/hetcoll-config-version.cmake.in share/hetcoll_aggregator.service.in share/hetcoll_aggregator.sysusers \
	share/hetcoll_completion.bash

# Pages of the manual: what the programs' --help says, and share/NAME.h2m beside it.
if HAVE_HELP2MAN
nodist_man1_MANS = $(man_pages)
endif
CLEANFILES += $(man_pages)
make_man_page = $(AM_V_GEN)$(MKDIR_P) share && program=`basename $@ .1` && \
	$(HELP2MAN) --no-info --section=1 --manual=hetcoll --source="hetcoll $(PACKAGE_VERSION)" \
		--include=$(srcdir)/share/$$program.h2m --include=$(srcdir)/share/common.h2m --output=$@ $(help_option) ./$$program
share/hetcoll_aggregator.1: hetcoll_aggregator $(srcdir)/share/hetcoll_aggregator.h2m $(srcdir)/share/common.h2m
	$(make_man_page)
share/hetcoll_bench.1: hetcoll_bench $(srcdir)/share/hetcoll_bench.h2m $(srcdir)/share/common.h2m
	$(make_man_page)
share/hetcoll_info.1: help_option = --help-option=--help-all
share/hetcoll_info.1: hetcoll_info $(srcdir)/share/hetcoll_info.h2m $(srcdir)/share/common.h2m
	$(make_man_page)
share/hetcoll_place.1: hetcoll_place $(srcdir)/share/hetcoll_place.h2m $(srcdir)/share/common.h2m
	$(make_man_page)
share/hetcoll_sim.1: hetcoll_sim $(srcdir)/share/hetcoll_sim.h2m $(srcdir)/share/common.h2m
	$(make_man_page)
share/hetcoll_tune.1: hetcoll_tune $(srcdir)/share/hetcoll_tune.h2m $(srcdir)/share/common.h2m
	$(make_man_page)
if WITH_OMPI
dist_man7_MANS = share/hetcoll.7
endif

# For pkg-config and CMake. They name folders from where they are themselves, so that an installation can be moved, and
# make install prefix=DIR is as good as configure --prefix=DIR.
for_build_systems = share/hetcoll_stream.pc share/hetcoll_types.pc share/hetcoll_wsp.pc share/hetcoll-config.cmake \
	share/hetcoll-config-version.cmake
if WITH_OMPI
pkgconfig_DATA += share/hetcoll_stream.pc share/hetcoll_types.pc share/hetcoll_wsp.pc
cmake_DATA = share/hetcoll-config.cmake share/hetcoll-config-version.cmake
endif
cmakedir = $(libdir)/cmake/hetcoll
CLEANFILES += $(for_build_systems)
$(for_build_systems): Makefile
	$(AM_V_GEN)$(MKDIR_P) share; \
	case $@ in *.pc) here='$(pkgconfigdir)' ;; *) here='$(cmakedir)' ;; esac; \
	includes=`realpath -ms --relative-to="$$here" '$(includedir)'` && \
	libraries=`realpath -ms --relative-to="$$here" '$(libdir)'` && \
	sed -e 's|[@]VERSION@|$(PACKAGE_VERSION)|' -e "s|[@]includedir@|$$includes|" -e "s|[@]libdir@|$$libraries|" \
		-e 's|[@]MPI_REQUIRES@|$(PC_MPI_REQUIRES)|' -e 's|[@]MPI_CFLAGS@|$(PC_MPI_CFLAGS)|' \
		-e 's|[@]MPI_LIBS@|$(PC_MPI_LIBS)|' '$(srcdir)/$@.in' >$@
share/hetcoll_stream.pc: share/hetcoll_stream.pc.in
share/hetcoll_types.pc: share/hetcoll_types.pc.in
share/hetcoll_wsp.pc: share/hetcoll_wsp.pc.in
share/hetcoll-config.cmake: share/hetcoll-config.cmake.in
share/hetcoll-config-version.cmake: share/hetcoll-config-version.cmake.in

# The aggregator as a service of systemd: not started by itself, as it needs an address and a key. It names folders, so it
# is written when they are known for certain.
sysusersdir = $(prefix)/lib/sysusers.d
if WITH_SYSTEMD_UNIT
install_service = $(aggregator_service)
endif

# Scripts that the documentation names.
dist_pkgdata_SCRIPTS = bench/plot.py bench/regenerate_table.sh
dist_doc_DATA = CHANGELOG.md LICENSE README.md

# Pages and examples as they lie here, so that the pages' links lead somewhere; completion under each program's name.
completionsdir = $(datadir)/bash-completion/completions
install-data-local:
	@for file in `cd $(srcdir) && find docs examples emulated_gpu/README.md -type f ! -name '*_test.sh' \
			! -name environment.sh ! -name local.mk ! -path '*/.*' ! -path '*/__pycache__/*'`; do \
		folder="$(DESTDIR)$(docdir)/$${file%/*}"; \
		$(MKDIR_P) "$$folder" && case `head -c 2 "$(srcdir)/$$file" | tr -d '\0'` in \
		'#!') $(INSTALL_SCRIPT) "$(srcdir)/$$file" "$$folder" ;; \
		*) $(INSTALL_DATA) "$(srcdir)/$$file" "$$folder" ;; \
		esac || exit 1; \
	done
	@$(MKDIR_P) "$(DESTDIR)$(completionsdir)" && for program in $(bin_PROGRAMS); do \
		$(INSTALL_DATA) $(srcdir)/share/hetcoll_completion.bash "$(DESTDIR)$(completionsdir)/$$program" || exit 1; \
	done
	@test -z "$(install_service)" || { $(MKDIR_P) "$(DESTDIR)$(sysusersdir)" "$(DESTDIR)$(systemdsystemunitdir)" && \
		$(INSTALL_DATA) $(srcdir)/share/hetcoll_aggregator.sysusers "$(DESTDIR)$(sysusersdir)/hetcoll_aggregator.conf" && \
		sed -e 's|[@]bindir@|$(bindir)|' -e 's|[@]sysconfdir@|$(sysconfdir)|' $(srcdir)/share/hetcoll_aggregator.service.in \
			>"$(DESTDIR)$(systemdsystemunitdir)/hetcoll_aggregator.service" && \
		chmod 644 "$(DESTDIR)$(systemdsystemunitdir)/hetcoll_aggregator.service"; }
uninstall-local:
	rm -rf "$(DESTDIR)$(docdir)/docs" "$(DESTDIR)$(docdir)/examples" "$(DESTDIR)$(docdir)/emulated_gpu"
	cd "$(DESTDIR)$(completionsdir)" && rm -f $(bin_PROGRAMS) || :
	rm -f "$(DESTDIR)$(sysusersdir)/hetcoll_aggregator.conf"
	test -z "$(install_service)" || rm -f "$(DESTDIR)$(systemdsystemunitdir)/hetcoll_aggregator.service"

# The emulated GPU, for packages that shall show something without one: never a part of make install, as a libcuda.so.1
# has no business where others are looked for. `run COMMAND...` there uses it.
emulatedgpudir = $(pkglibdir)/emulated_gpu
if WITH_CUDA
install-emulated-gpu: $(emulated_gpu_lib)/libcuda.so.1 $(emulated_gpu_lib)/libnvidia-ml.so.1 \
		$(emulated_gpu_lib)/libhetcoll_emulated_kernels.so
	$(MKDIR_P) "$(DESTDIR)$(emulatedgpudir)"
	for file in libcuda.so.1 libnvidia-ml.so.1 libhetcoll_emulated_kernels.so; do \
		$(INSTALL_DATA) $(emulated_gpu_lib)/$$file "$(DESTDIR)$(emulatedgpudir)" || exit 1; \
	done
	$(INSTALL_SCRIPT) $(srcdir)/share/run_on_emulated_gpu.sh "$(DESTDIR)$(emulatedgpudir)/run"
endif
EXTRA_DIST += share/run_on_emulated_gpu.sh
.PHONY: install-emulated-gpu

# libtool cannot install below a folder with a blank in its name: said at the start, not half-way.
# A variable hides from automake that these targets are its own.
install_targets = install install-am install-exec install-data install-strip install-emulated-gpu
$(install_targets): refuse-blanks
refuse-blanks:
	@for folder in "$(DESTDIR)" "$(bindir)" "$(libdir)" "$(includedir)" "$(datadir)" "$(componentdir)"; do \
		case $$folder in \
		*[[:space:]]*) \
			echo "make install: '$$folder' has a blank, and libtool installs nothing below such a folder: take another one," >&2; \
			echo "and move what is there afterwards, or give it by a link without blanks" >&2; \
			exit 1 ;; \
		esac; \
	done
.PHONY: refuse-blanks
