# Programs for users, installed, and the topologies of known machines.
# Pure: no GPU, no MPI.
if HAVE_BENCH_HEADERS
bin_PROGRAMS += hetcoll_place
man_pages += share/hetcoll_place.1
TESTS += tools/hetcoll_place_test.sh
endif
noinst_LTLIBRARIES += libhetcoll_place.la
libhetcoll_place_la_SOURCES = \
	tools/place_allocation.h tools/place_allocation.cc \
	tools/place_file.h tools/place_file.cc \
	tools/place_json.h tools/place_json.cc \
	tools/place_print.h tools/place_print.cc
hetcoll_place_SOURCES = tools/hetcoll_place.cc
hetcoll_place_LDADD = libhetcoll_place.la libhetcoll_command_line.la $(core_and_tools)

# What hetcoll_info says of calls that are described to it. Pure too.
if HAVE_BENCH_HEADERS
noinst_LTLIBRARIES += libhetcoll_info.la
endif
libhetcoll_info_la_SOURCES = \
	tools/adapters_option.h tools/adapters_option.cc \
	tools/all_schedules.h tools/all_schedules.cc \
	tools/call_setup.h tools/call_setup.cc \
	tools/info_call.h tools/info_call.cc \
	tools/info_collective.h tools/info_collective.cc \
	tools/info_costs.h tools/info_costs.cc \
	tools/info_adapters.h tools/info_adapters.cc \
	tools/info_explain.h tools/info_explain.cc \
	tools/info_live.h tools/info_live.cc \
	tools/info_model.h tools/info_model.cc \
	tools/info_prices.h tools/info_prices.cc \
	tools/info_regions.h tools/info_regions.cc \
	tools/info_schedule.h tools/info_schedule.cc \
	tools/job_table.h tools/job_table.cc \
	tools/kernel_code.h tools/kernel_code.cc \
	tools/live_pages.h tools/live_pages.cc \
	tools/ompi_info.h tools/ompi_info.cc \
	tools/perfetto.h tools/perfetto.cc \
	tools/report.h tools/report.cc tools/report_parts.h \
	tools/report_job.cc tools/report_machine.cc tools/report_answers.cc \
	tools/trace_calls.h tools/trace_calls.cc

# A report's page, style and scripts as strings: raw ones, whose end no file has.
report_sources = \
	tools/report/frame.html \
	tools/report/style.css \
	tools/report/lookup.js \
	tools/report/call.js \
	tools/report/charts.js \
	tools/report/page.js
report_strings = \
	tools/report/frame.inc \
	tools/report/style.inc \
	tools/report/lookup.inc \
	tools/report/call.inc \
	tools/report/charts.inc \
	tools/report/page.inc
EXTRA_DIST += $(report_sources)
BUILT_SOURCES += $(report_strings)
CLEANFILES += $(report_strings)
SUFFIXES = .html .css .js .inc
report_string = $(AM_V_GEN)$(MKDIR_P) tools/report && { printf 'R"report('; cat $<; printf ')report"\n'; } >$@
.html.inc:
	$(report_string)
.css.inc:
	$(report_string)
.js.inc:
	$(report_string)

if WITH_CUDA
if HAVE_BENCH_HEADERS
bin_PROGRAMS += hetcoll_info
man_pages += share/hetcoll_info.1
TESTS += tools/hetcoll_info_test.sh tools/hetcoll_info_subcommands_test.sh tools/hetcoll_info_calls_test.sh \
	tools/hetcoll_info_trace_test.sh tools/hetcoll_info_schedule_test.sh tools/report_test.sh
if WITH_OMPI
TESTS += tools/hetcoll_info_doctor_test.sh
endif
endif
hetcoll_tools_sources += tools/child.h tools/child.cc tools/this_machine.h tools/this_machine.cc
hetcoll_info_SOURCES = \
	tools/doctor.h tools/doctor_machine.cc tools/doctor_open_mpi.cc tools/doctor_parameters.cc \
	tools/hetcoll_info.cc \
	tools/info_doctor.h tools/info_doctor.cc \
	tools/info_html.h tools/info_html.cc \
	tools/info_topology.h tools/info_topology.cc \
	tools/info_trace.h tools/info_trace.cc
# What it compares with the machine.
tools/doctor_open_mpi.o: AM_CPPFLAGS += -DHETCOLL_MPIRUN='"$(MPIRUN)"' -DHETCOLL_OMPI_RELEASE='"$(OMPI_RELEASE)"'
tools/doctor_machine.o: AM_CPPFLAGS += -DHETCOLL_KERNEL_FLAGS='"$(NVCC_ARCH_FLAGS)"'
tools/doctor_open_mpi.o tools/doctor_machine.o: Makefile
hetcoll_info_LDADD = libhetcoll_info.la libhetcoll_command_line.la $(core_and_tools)

if WITH_OPENSSL
if HAVE_BENCH_HEADERS
bin_PROGRAMS += hetcoll_aggregator
man_pages += share/hetcoll_aggregator.1
aggregator_service += hetcoll_aggregator.service
endif
endif
hetcoll_aggregator_SOURCES = \
	tools/hetcoll_aggregator.cc \
	tools/limited_log.h tools/limited_log.cc \
	tools/line_output.h tools/line_output.cc \
	tools/supervise.h tools/supervise.cc
hetcoll_aggregator_LDADD = libhetcoll_command_line.la $(core_and_tools)

if WITH_OMPI
if HAVE_BENCH_HEADERS
bin_PROGRAMS += hetcoll_tune
man_pages += share/hetcoll_tune.1
TESTS += tools/hetcoll_tune_test.sh tools/install_test.sh
# Near the end of make install: whether jobs will find the component. Never a failure.
try_component = \
	test -n "$(DESTDIR)" || $(TIMEOUT) -k 5 90 ./hetcoll_info doctor component --component "$(componentdir)" \
		--mpirun "$(MPIRUN)" || :
if TUNE_AT_INSTALL
# The end of make install: a line that says what happened, and never a failure.
tune_this_machine = \
	if test -n "$(DESTDIR)"; then \
		echo "hetcoll_tune: not run, because DESTDIR is for another machine: run hetcoll_tune there"; \
	else \
		if test "$(componentdir)" != "$(OMPI_COMPONENTS)"; then \
			OMPI_MCA_mca_base_component_path="$(componentdir):$(OMPI_COMPONENTS)"; \
			export OMPI_MCA_mca_base_component_path; \
		fi; \
		$(TIMEOUT) -k 5 60 ./hetcoll_tune --quick || :; \
	fi
endif
endif
hetcoll_tune_SOURCES = \
	tools/hetcoll_tune.cc \
	tools/tune_jobs.h tools/tune_jobs.cc \
	tools/tune_line.h tools/tune_line.cc \
	tools/tune_options.h tools/tune_options.cc \
	tools/tune_table.h tools/tune_table.cc \
	tools/tune_worker.h tools/tune_worker.cc
hetcoll_tune_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS) -DHETCOLL_MPIRUN='"$(MPIRUN)"'
hetcoll_tune_LDADD = libhetcoll_info.la libhetcoll_machine.la libhetcoll_measure.la libhetcoll_command_line.la $(core_and_tools) $(MPI_LIBS)
endif
endif

# Simulated clusters: no GPU, no Open MPI.
if HAVE_SIMGRID
bin_PROGRAMS += hetcoll_sim
man_pages += share/hetcoll_sim.1
TESTS += tools/hetcoll_sim_test.sh
endif
hetcoll_sim_SOURCES = \
	measure/host.h measure/host.cc \
	tools/hetcoll_sim.cc \
	tools/sim_options.h tools/sim_options.cc \
	tools/sim_report.h tools/sim_report.cc
hetcoll_sim_LDADD = libhetcoll_sim.la libhetcoll_info.la libhetcoll_command_line.la $(core_and_tools)
nodist_hetcoll_sim_SOURCES = measure/commit.h

topologydir = $(pkgdatadir)/topology
dist_topology_DATA = \
	topology/machines/dgx1p.topology \
	topology/machines/dgx1v.topology \
	topology/machines/dgx1v-014.topology \
	topology/machines/dgx1v-034.topology \
	topology/machines/dgx1v-0124.topology \
	topology/machines/dgx1v-01234.topology \
	topology/machines/dgx2.topology \
	topology/machines/dgxa100.topology \
	topology/machines/dgxh100.topology \
	topology/machines/pcie8.topology \
	topology/machines/p100.topology \
	topology/machines/v100-100gbe.topology \
	topology/machines/4xtitanv.topology \
	topology/machines/4xtitanrtx.topology \
	topology/machines/4xrtx2060.topology \
	topology/machines/4xp4000.topology \
	topology/machines/awan64.cluster \
	topology/machines/dgx1vx128.cluster \
	topology/machines/dgxh100x512.cluster \
	topology/machines/fragments.cluster \
	topology/machines/hetpipe.cluster \
	topology/machines/netreduce.cluster \
	topology/machines/netreduce6.cluster \
	topology/machines/oversubscribed.cluster
EXTRA_DIST += tools/hetcoll_tune_test.sh tools/hetcoll_tune_test.json tools/install_test.sh \
	tools/hetcoll_tune_test.dgx.measurements
EXTRA_DIST += tools/hetcoll_place_test.sh examples/placement
EXTRA_DIST += tools/hetcoll_sim_test.sh
EXTRA_DIST += tools/info_says.sh tools/hetcoll_info_test.sh tools/hetcoll_info_subcommands_test.sh tools/hetcoll_info_calls_test.sh \
	tools/hetcoll_info_trace_test.sh tools/hetcoll_info_schedule_test.sh tools/hetcoll_info_doctor_test.sh \
	tools/perfetto_check.py \
	tools/report_test.sh tools/report_test.js tools/report_check.py

# The schemas of tuning tables and of what the tools print as JSON, for editors and validators.
dist_pkgdata_DATA = tuning/hetcoll_tuning.schema.json \
	tools/schema/hetcoll_bench.schema.json tools/schema/hetcoll_info.schema.json \
	tools/schema/hetcoll_place.schema.json tools/schema/hetcoll_sim.schema.json
EXTRA_DIST += tools/schema_check.py
