# The MPI tests: programs, and scripts that run them, an area each. make check runs all areas, run.sh those of
# their cases whose line has a word.
mpi_areas = test/mpi/cases/accumulate.sh test/mpi/cases/adapters.sh test/mpi/cases/algorithms.sh test/mpi/cases/nodes.sh test/mpi/cases/faults.sh \
	test/mpi/cases/in_network.sh test/mpi/cases/aborts.sh test/mpi/cases/collectives.sh \
	test/mpi/cases/components.sh test/mpi/cases/costs.sh test/mpi/cases/cpu_path.sh test/mpi/cases/different_calls.sh test/mpi/cases/fixed_point.sh test/mpi/cases/float8.sh \
	test/mpi/cases/horovod.sh test/mpi/cases/late_ranks.sh test/mpi/cases/many_ranks.sh test/mpi/cases/memory.sh test/mpi/cases/missing_ranks.sh \
	test/mpi/cases/nonblocking.sh test/mpi/cases/operations.sh test/mpi/cases/programs.sh \
	test/mpi/cases/reports.sh test/mpi/cases/reproducible.sh test/mpi/cases/runtime_api.sh test/mpi/cases/settings.sh test/mpi/cases/stream_order.sh \
	test/mpi/cases/surroundings.sh \
	test/mpi/cases/wrong_calls.sh test/mpi/cases/wsp.sh
EXTRA_DIST += $(mpi_areas) test/mpi/bench_test.sh test/mpi/run.sh test/mpi/case.sh test/mpi/headers_test.sh test/mpi/idups.sh test/mpi/on_nodes.sh test/mpi/as_host.sh test/mpi/into_host.sh test/mpi/jobs.sh test/mpi/live_on_hosts.sh \
	test/mpi/many_queued.sh test/mpi/on_adapters.sh test/mpi/on_device.sh test/mpi/on_rank.sh test/mpi/small_shm.sh test/mpi/stops.sh test/mpi/story_test.sh test/mpi/sweep.sh test/mpi/usage_test.sh \
	test/mpi/with_aggregators.sh
EXTRA_DIST += test/mpi/runtime_kernels.cu test/mpi/runtime_kernels.cuh

if WITH_OMPI
if WITH_CUDA
check_LTLIBRARIES += libhetcoll_mpi_test.la
libhetcoll_mpi_test_la_SOURCES = test/mpi/check.h test/mpi/check.cc test/mpi/collective_calls.h test/mpi/collective_calls.cc \
	test/gpu/test_memory.h test/gpu/test_memory.cc
libhetcoll_mpi_test_la_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
mpi_test_libs = libhetcoll_mpi_test.la libhetcoll_measure.la libhetcoll.la $(MPI_LIBS)

check_PROGRAMS += \
	test/mpi/aborts test/mpi/accumulate test/mpi/adapters test/mpi/algorithms test/mpi/all_collectives \
	test/mpi/callers test/mpi/churn test/mpi/counts test/mpi/cpu_path test/mpi/device_allreduce test/mpi/different_calls test/mpi/events test/mpi/failures \
	test/mpi/faults test/mpi/float8 test/mpi/float_control test/mpi/foreign_kernel test/mpi/freed_memory test/mpi/guards test/mpi/host_path \
	test/mpi/idups test/mpi/late_ranks test/mpi/lifecycle test/mpi/limits test/mpi/mapping_faults test/mpi/missing_ranks \
	test/mpi/mixed_memory test/mpi/named_stream test/mpi/no_memory test/mpi/nonblocking test/mpi/nonblocking_faults \
	test/mpi/explained test/mpi/not_accelerated test/mpi/own_collectives test/mpi/observed test/mpi/other_memory test/mpi/point_to_point \
	test/mpi/reported_calls test/mpi/reported_programs test/mpi/runtime_api test/mpi/sessions test/mpi/settings test/mpi/slices test/mpi/small_shm test/mpi/small_stack test/mpi/spawned test/mpi/staged_collectives \
	test/mpi/steady_state test/mpi/stops test/mpi/stream_order test/mpi/streams test/mpi/surroundings test/mpi/threads test/mpi/types \
	test/mpi/fixed_point test/mpi/in_network test/mpi/reproducible test/mpi/user_ops test/mpi/wrong_calls test/mpi/wsp test/mpi/zero_counts
TESTS += $(mpi_areas) test/mpi/bench_test.sh test/mpi/headers_test.sh test/mpi/story_test.sh test/mpi/usage_test.sh

# Wrong results for test/mpi/bench_test.sh.
check_LTLIBRARIES += test/mpi/spoil.la
check_DATA += test/mpi/spoil.so
CLEANFILES += test/mpi/spoil.so
test_mpi_spoil_la_SOURCES = test/mpi/spoil.c
test_mpi_spoil_la_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_spoil_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/mpi
test_mpi_spoil_la_LIBADD = $(MPI_LIBS)
test/mpi/spoil.so: test/mpi/spoil.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/spoil.so $@

# For test/mpi/cases/reports.sh.
check_LTLIBRARIES += test/mpi/pmpi_tool.la
check_DATA += test/mpi/pmpi_tool.so
CLEANFILES += test/mpi/pmpi_tool.so
test_mpi_pmpi_tool_la_SOURCES = test/mpi/pmpi_tool.c
test_mpi_pmpi_tool_la_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_pmpi_tool_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/mpi
test_mpi_pmpi_tool_la_LIBADD = $(MPI_LIBS)
test/mpi/pmpi_tool.so: test/mpi/pmpi_tool.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/pmpi_tool.so $@

# For test/mpi/cases/surroundings.sh: a device file that comes and goes, a runtime that does not answer, and an Open MPI
# without memory.
check_LTLIBRARIES += test/mpi/device_files.la test/mpi/failing_fetches.la test/mpi/failing_tables.la
check_DATA += test/mpi/device_files.so test/mpi/failing_fetches.so test/mpi/failing_tables.so
CLEANFILES += test/mpi/device_files.so test/mpi/failing_fetches.so test/mpi/failing_tables.so
test_mpi_device_files_la_SOURCES = test/mpi/device_files.c
test_mpi_device_files_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/mpi
test/mpi/device_files.so: test/mpi/device_files.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/device_files.so $@
test_mpi_failing_fetches_la_SOURCES = test/mpi/failing_fetches.c
test_mpi_failing_fetches_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/mpi
test/mpi/failing_fetches.so: test/mpi/failing_fetches.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/failing_fetches.so $@
test_mpi_failing_tables_la_SOURCES = test/mpi/failing_tables.c
test_mpi_failing_tables_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/mpi
test/mpi/failing_tables.so: test/mpi/failing_tables.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/failing_tables.so $@

test_mpi_aborts_SOURCES = test/mpi/aborts.cc
test_mpi_aborts_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_aborts_LDADD = $(mpi_test_libs)
test_mpi_accumulate_SOURCES = test/mpi/accumulate.cc
test_mpi_accumulate_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_accumulate_LDADD = $(mpi_test_libs)
test_mpi_adapters_SOURCES = test/mpi/adapters.cc
test_mpi_adapters_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_adapters_LDADD = $(mpi_test_libs)
test_mpi_slices_SOURCES = test/mpi/slices.cc
test_mpi_slices_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_slices_LDADD = $(mpi_test_libs)
test_mpi_algorithms_SOURCES = test/mpi/algorithms.cc
test_mpi_algorithms_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_algorithms_LDADD = $(mpi_test_libs)
test_mpi_callers_SOURCES = test/mpi/callers.cc
test_mpi_callers_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_callers_LDADD = $(mpi_test_libs)
test_mpi_churn_SOURCES = test/mpi/churn.cc
test_mpi_churn_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_churn_LDADD = $(mpi_test_libs)
test_mpi_counts_SOURCES = test/mpi/counts.cc
test_mpi_counts_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_counts_LDADD = $(mpi_test_libs)
test_mpi_cpu_path_SOURCES = test/mpi/cpu_path.cc
test_mpi_cpu_path_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_cpu_path_LDADD = $(mpi_test_libs) -ldl
test_mpi_mapping_faults_SOURCES = test/mpi/mapping_faults.cc
test_mpi_mapping_faults_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_mapping_faults_LDADD = $(mpi_test_libs)
test_mpi_all_collectives_SOURCES = test/mpi/all_collectives.cc
test_mpi_all_collectives_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_all_collectives_LDADD = $(mpi_test_libs)
test_mpi_different_calls_SOURCES = test/mpi/different_calls.cc test/mpi/vector.h
test_mpi_different_calls_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_different_calls_LDADD = $(mpi_test_libs)
test_mpi_small_stack_SOURCES = test/mpi/small_stack.cc
test_mpi_small_stack_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_small_stack_LDADD = $(mpi_test_libs)
test_mpi_missing_ranks_SOURCES = test/mpi/missing_ranks.cc
test_mpi_missing_ranks_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_missing_ranks_LDADD = $(mpi_test_libs)
test_mpi_device_allreduce_SOURCES = test/mpi/device_allreduce.cc
test_mpi_device_allreduce_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_device_allreduce_LDADD = $(mpi_test_libs)
test_mpi_events_SOURCES = test/mpi/events.cc
test_mpi_events_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_events_LDADD = $(mpi_test_libs)
test_mpi_failures_SOURCES = test/mpi/failures.cc test/mpi/calls_in_place.h test/mpi/calls_in_place.cc
test_mpi_failures_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_failures_LDADD = $(mpi_test_libs)
test_mpi_faults_SOURCES = test/mpi/faults.cc
test_mpi_faults_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_faults_LDADD = $(mpi_test_libs)
test_mpi_float_control_SOURCES = test/mpi/float_control.cc test/unit/float_modes.h
test_mpi_float_control_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_float_control_LDADD = $(mpi_test_libs)
test_mpi_float8_SOURCES = test/mpi/float8.cc
test_mpi_float8_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_float8_LDADD = $(mpi_test_libs)
test_mpi_foreign_kernel_SOURCES = test/mpi/foreign_kernel.cc
test_mpi_foreign_kernel_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_foreign_kernel_LDADD = $(mpi_test_libs)
test_mpi_freed_memory_SOURCES = test/mpi/freed_memory.cc
test_mpi_freed_memory_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_freed_memory_LDADD = $(mpi_test_libs)
test_mpi_guards_SOURCES = test/mpi/guards.cc
test_mpi_guards_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_guards_LDADD = $(mpi_test_libs)
test_mpi_host_path_SOURCES = test/mpi/host_path.cc test/unit/calling_object.h test/mpi/own_allocations.h test/mpi/own_allocations.cc
test_mpi_host_path_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_host_path_LDADD = $(mpi_test_libs)
test_mpi_late_ranks_SOURCES = test/mpi/late_ranks.cc
test_mpi_late_ranks_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_late_ranks_LDADD = $(mpi_test_libs)
test_mpi_lifecycle_SOURCES = test/mpi/lifecycle.cc
test_mpi_lifecycle_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_lifecycle_LDADD = $(mpi_test_libs)
test_mpi_limits_SOURCES = test/mpi/limits.cc
test_mpi_limits_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_limits_LDADD = $(mpi_test_libs)
test_mpi_mixed_memory_SOURCES = test/mpi/mixed_memory.cc
test_mpi_mixed_memory_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_mixed_memory_LDADD = $(mpi_test_libs)
test_mpi_no_memory_SOURCES = test/mpi/no_memory.cc \
	test/unit/calling_object.h test/mpi/own_allocations.h test/mpi/own_allocations.cc
test_mpi_no_memory_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_no_memory_LDADD = $(mpi_test_libs)
test_mpi_nonblocking_SOURCES = test/mpi/nonblocking.cc
test_mpi_nonblocking_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_nonblocking_LDADD = $(mpi_test_libs)
test_mpi_nonblocking_faults_SOURCES = test/mpi/nonblocking_faults.cc
test_mpi_nonblocking_faults_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_nonblocking_faults_LDADD = $(mpi_test_libs)
test_mpi_own_collectives_SOURCES = test/mpi/own_collectives.cc
test_mpi_own_collectives_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_own_collectives_LDADD = $(mpi_test_libs)
test_mpi_not_accelerated_SOURCES = test/mpi/not_accelerated.cc
test_mpi_not_accelerated_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_not_accelerated_LDADD = $(mpi_test_libs)
test_mpi_explained_SOURCES = test/mpi/explained.cc
test_mpi_explained_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_explained_LDADD = $(mpi_test_libs)
test_mpi_observed_SOURCES = test/mpi/observed.cc
test_mpi_observed_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_observed_LDADD = $(mpi_test_libs)
test_mpi_other_memory_SOURCES = test/mpi/other_memory.cc
test_mpi_other_memory_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_other_memory_LDADD = $(mpi_test_libs)
test_mpi_point_to_point_SOURCES = test/mpi/point_to_point.cc
test_mpi_point_to_point_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_point_to_point_LDADD = $(mpi_test_libs)
test_mpi_sessions_SOURCES = test/mpi/sessions.cc
test_mpi_sessions_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_sessions_LDADD = $(mpi_test_libs)
test_mpi_settings_SOURCES = test/mpi/settings.cc
test_mpi_settings_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_settings_LDADD = $(mpi_test_libs)
test_mpi_spawned_SOURCES = test/mpi/spawned.cc
test_mpi_spawned_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_spawned_LDADD = $(mpi_test_libs)
test_mpi_staged_collectives_SOURCES = test/mpi/staged_collectives.cc
test_mpi_staged_collectives_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_staged_collectives_LDADD = $(mpi_test_libs)
test_mpi_steady_state_SOURCES = test/mpi/steady_state.cc
test_mpi_steady_state_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_steady_state_LDADD = $(mpi_test_libs)
test_mpi_small_shm_SOURCES = test/mpi/small_shm.cc
test_mpi_small_shm_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_small_shm_LDADD = $(mpi_test_libs)
test_mpi_idups_SOURCES = test/mpi/idups.cc
test_mpi_idups_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_idups_LDADD = $(mpi_test_libs)
# Not a part of make check: a thousand late ranks take ten minutes.
check-stops: mca_coll_hetcoll.la test/mpi/stops test/mpi/different_calls
	bash $(srcdir)/test/mpi/stops.sh . >stops.txt; status=$$?; cat stops.txt; exit $$status
test_mpi_stops_SOURCES = test/mpi/stops.cc
test_mpi_stops_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_stops_LDADD = $(mpi_test_libs)
test_mpi_named_stream_SOURCES = test/mpi/named_stream.cc
test_mpi_named_stream_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_named_stream_LDADD = $(mpi_test_libs)
test_mpi_stream_order_SOURCES = test/mpi/stream_order.cc test/mpi/stream_of_abi.c
test_mpi_stream_order_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_stream_order_LDADD = $(mpi_test_libs)
# Its mutant: streams that do not wait.
check_LTLIBRARIES += test/mpi/no_wait_kernel.la
check_DATA += test/mpi/no_wait_kernel.so
test_mpi_no_wait_kernel_la_SOURCES = test/mpi/no_wait_kernel.cc
test_mpi_no_wait_kernel_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/mpi
test/mpi/no_wait_kernel.so: test/mpi/no_wait_kernel.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/no_wait_kernel.so $@
CLEANFILES += test/mpi/no_wait_kernel.so
# Not a part of make check: 100,000 queued calls on each kind of stream, and the mutant.
check-streams: all test/mpi/stream_order test/mpi/no_wait_kernel.so
	HETCOLL_BUILDDIR='$(abs_builddir)' bash $(srcdir)/test/mpi/many_queued.sh $(STREAM_CALLS)
.PHONY: check-streams
test_mpi_streams_SOURCES = test/mpi/streams.cc
test_mpi_streams_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_streams_LDADD = $(mpi_test_libs)
test_mpi_surroundings_SOURCES = test/mpi/surroundings.cc
test_mpi_surroundings_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_surroundings_LDADD = $(mpi_test_libs)
test_mpi_threads_SOURCES = test/mpi/threads.cc
test_mpi_threads_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_threads_LDADD = $(mpi_test_libs)
test_mpi_types_SOURCES = test/mpi/types.cc test/mpi/types_in_c.h test/mpi/types_in_c.c
test_mpi_types_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_types_LDADD = $(mpi_test_libs)
test_mpi_fixed_point_SOURCES = test/mpi/fixed_point.cc
test_mpi_fixed_point_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_fixed_point_LDADD = $(mpi_test_libs)
test_mpi_in_network_SOURCES = test/mpi/in_network.cc
test_mpi_in_network_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_in_network_LDADD = $(mpi_test_libs)
test_mpi_reported_calls_SOURCES = test/mpi/reported_calls.cc test/mpi/vector.h
test_mpi_reported_calls_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_reported_calls_LDADD = $(mpi_test_libs)
test_mpi_reported_programs_SOURCES = test/mpi/reported_programs.cc test/mpi/vector.h
test_mpi_reported_programs_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_reported_programs_LDADD = $(mpi_test_libs)
test_mpi_reproducible_SOURCES = test/mpi/reproducible.cc
test_mpi_reproducible_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_reproducible_LDADD = $(mpi_test_libs)
test_mpi_user_ops_SOURCES = test/mpi/user_ops.cc
test_mpi_user_ops_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_user_ops_LDADD = $(mpi_test_libs)
test_mpi_wrong_calls_SOURCES = test/mpi/wrong_calls.cc test/mpi/vector.h
test_mpi_wrong_calls_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_wrong_calls_LDADD = $(mpi_test_libs)

test_mpi_wsp_SOURCES = test/mpi/wsp.cc
test_mpi_wsp_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_wsp_LDADD = libhetcoll_wsp.la $(mpi_test_libs)
test_mpi_zero_counts_SOURCES = test/mpi/zero_counts.cc test/mpi/vector.h
test_mpi_zero_counts_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_zero_counts_LDADD = $(mpi_test_libs)

# Driver calls that fail, by the thousand: half an hour.
check-faults: all test/mpi/faults test/mpi/nonblocking_faults
	HETCOLL_BUILDDIR='$(abs_builddir)' bash $(srcdir)/test/mpi/sweep.sh $(FAULTS)
.PHONY: check-faults

# What user_ops opens, found beside the program.
check_LTLIBRARIES += test/mpi/user_functions.la
check_DATA += test/mpi/user_functions.so
test_mpi_user_functions_la_SOURCES = test/mpi/user_functions.cc
test_mpi_user_functions_la_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_user_functions_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/mpi
test/mpi/user_functions.so: test/mpi/user_functions.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/user_functions.so $@
CLEANFILES += test/mpi/user_functions.so

# Programs of the CUDA runtime API, in C and by nvcc, and the latter's kernel for the host.
test_mpi_runtime_api_SOURCES = test/mpi/runtime_api.c
test_mpi_runtime_api_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
test_mpi_runtime_api_LDADD = emulated_gpu/libcudart.la $(MPI_LIBS)
check_PROGRAMS += test/mpi/runtime_kernels
test_mpi_runtime_kernels_SOURCES =
nodist_EXTRA_test_mpi_runtime_kernels_SOURCES = linked_by_cxx.cc
test_mpi_runtime_kernels_LDADD = test/mpi/runtime_kernels_by_nvcc.$(OBJEXT) emulated_gpu/libcudart.la $(MPI_LIBS)
test/mpi/runtime_kernels_by_nvcc.$(OBJEXT): test/mpi/runtime_kernels.cu test/mpi/runtime_kernels.cuh
	@test -d test/mpi || mkdir -p test/mpi
	$(AM_V_GEN)for host in $(CXX); do case $$host in *ccache|*distcc) ;; *) break ;; esac; done; \
	$(NVCC) $(NVCC_ARCH_FLAGS) $(NVCCFLAGS) -ccbin "$$host" -std=c++17 -I$(srcdir) $(CUDA_CPPFLAGS) \
		$(MPI_CPPFLAGS) -DOMPI_SKIP_MPICXX=1 -c -o $@ $(srcdir)/test/mpi/runtime_kernels.cu
CLEANFILES += test/mpi/runtime_kernels_by_nvcc.$(OBJEXT)
check_LTLIBRARIES += test/mpi/runtime_kernels_on_host.la
test_mpi_runtime_kernels_on_host_la_SOURCES = test/mpi/runtime_kernels_on_host.cc
test_mpi_runtime_kernels_on_host_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/mpi
endif
endif
