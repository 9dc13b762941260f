# Unit tests: one program a folder, its sources in test/unit/FOLDER.mk.
include test/unit/base.mk
include test/unit/bench.mk
include test/unit/schedule.mk
include test/unit/topology.mk
include test/unit/topology_probe.mk
include test/unit/tuning.mk
include test/unit/device.mk
include test/unit/pointer_cache.mk
include test/unit/cuda_kernels.mk
include test/unit/transport.mk
include test/unit/aggregator.mk
include test/unit/engine.mk
include test/unit/emulated_gpu.mk
include test/unit/sim.mk
include test/unit/wsp.mk
include test/unit/tools.mk

test/gpu/%_test.$(OBJEXT) test/mpi/%.$(OBJEXT) test/unit/cuda_kernels_%_test.$(OBJEXT): \
	private CXXFLAGS = $(TEST_CXXFLAGS)
test/unit/%_test.$(OBJEXT) test/unit/%.gch: private CXXFLAGS = $(UNIT_TEST_CXXFLAGS)

# Half of what a test takes to compile is GoogleTest, so GCC reads it compiled. Elsewhere, or where flags differ, the
# header is read as it is.
if HAVE_GTEST
if PRECOMPILED_HEADERS
test/unit/%_test.$(OBJEXT): private AM_CXXFLAGS += -include test/unit/precompiled.h
precompiled_header = test/unit/precompiled.h.gch
$(precompiled_header): test/unit/precompiled.h
	@$(MKDIR_P) test/unit/$(DEPDIR)
	$(AM_V_GEN)$(CXXCOMPILE) -MD -MP -MF test/unit/$(DEPDIR)/precompiled.Po -MT $@ -x c++-header -o $@-t $(srcdir)/test/unit/precompiled.h && \
	mv -f $@-t $@
-include test/unit/$(DEPDIR)/precompiled.Po
CLEANFILES += $(precompiled_header) $(precompiled_header)-t test/unit/$(DEPDIR)/precompiled.Po
$(test_unit_base_test_OBJECTS) $(test_unit_bench_test_OBJECTS) $(test_unit_schedule_test_OBJECTS) \
	$(test_unit_sim_test_OBJECTS) $(test_unit_tuning_test_OBJECTS) $(test_unit_device_test_OBJECTS) \
	$(test_unit_pointer_cache_test_OBJECTS) $(test_unit_cuda_kernels_test_OBJECTS) \
	$(test_unit_transport_test_OBJECTS) $(test_unit_aggregator_test_OBJECTS) $(test_unit_engine_test_OBJECTS) \
	$(test_unit_emulated_gpu_test_OBJECTS) $(test_unit_topology_test_OBJECTS) \
	$(test_unit_topology_probe_test_OBJECTS) $(test_unit_wsp_test_OBJECTS) $(test_unit_tools_test_OBJECTS): $(precompiled_header)
endif
endif
EXTRA_DIST += test/unit/precompiled.h

unit_libs = $(core_and_tools) -lgtest_main -lgtest
unit_tests = test/unit/base_test test/unit/bench_test test/unit/schedule_test test/unit/topology_test test/unit/tuning_test
unit_tests_openssl = test/unit/aggregator_test
unit_tests_cuda = test/unit/device_test test/unit/pointer_cache_test test/unit/cuda_kernels_test \
	test/unit/topology_probe_test test/unit/transport_test test/unit/engine_test test/unit/emulated_gpu_test

# SimGrid's actors change stacks without ThreadSanitizer's knowledge, so its test is apart.
all_unit_tests =
sim_unit_tests =
if HAVE_GTEST
all_unit_tests += $(unit_tests)
if HAVE_SIMGRID
sim_unit_tests += test/unit/sim_test
endif
if WITH_CUDA
all_unit_tests += $(unit_tests_cuda)
if WITH_OPENSSL
all_unit_tests += $(unit_tests_openssl)
endif
endif
if WITH_OMPI
all_unit_tests += test/unit/wsp_test
endif
if HAVE_BENCH_HEADERS
all_unit_tests += test/unit/tools_test
endif
endif
check_PROGRAMS += $(all_unit_tests) $(sim_unit_tests)
# What they need, without all the rest.
unit_test_goals = $(BUILT_SOURCES) $(all_unit_tests)
if WITH_CUDA
unit_test_goals += $(emulated_gpu_files)
endif
TESTS += $(all_unit_tests) $(sim_unit_tests)

test_unit_base_test_SOURCES = $(unit_sources_base)
nodist_EXTRA_test_unit_base_test_SOURCES = linked_by_cxx.cc
test_unit_base_test_LDADD = $(unit_libs)
test_unit_bench_test_SOURCES = $(unit_sources_bench)
nodist_EXTRA_test_unit_bench_test_SOURCES = linked_by_cxx.cc
test_unit_bench_test_LDADD = $(unit_libs)
test_unit_schedule_test_SOURCES = $(unit_sources_schedule)
nodist_EXTRA_test_unit_schedule_test_SOURCES = linked_by_cxx.cc
test_unit_schedule_test_LDADD = $(unit_libs)
test_unit_sim_test_SOURCES = $(unit_sources_sim)
nodist_EXTRA_test_unit_sim_test_SOURCES = linked_by_cxx.cc
test_unit_sim_test_LDADD = libhetcoll_sim.la $(unit_libs)
test_unit_tuning_test_SOURCES = $(unit_sources_tuning)
nodist_EXTRA_test_unit_tuning_test_SOURCES = linked_by_cxx.cc
test_unit_tuning_test_LDADD = $(unit_libs)
test_unit_device_test_SOURCES = $(unit_sources_device)
nodist_EXTRA_test_unit_device_test_SOURCES = linked_by_cxx.cc
test_unit_device_test_LDADD = $(unit_libs)
test_unit_pointer_cache_test_SOURCES = $(unit_sources_pointer_cache)
nodist_EXTRA_test_unit_pointer_cache_test_SOURCES = linked_by_cxx.cc
test_unit_pointer_cache_test_LDADD = $(unit_libs)
test_unit_cuda_kernels_test_SOURCES = $(unit_sources_cuda_kernels)
nodist_EXTRA_test_unit_cuda_kernels_test_SOURCES = linked_by_cxx.cc
test_unit_cuda_kernels_test_LDADD = $(unit_libs)
test_unit_transport_test_SOURCES = $(unit_sources_transport)
nodist_EXTRA_test_unit_transport_test_SOURCES = linked_by_cxx.cc
test_unit_transport_test_LDADD = $(unit_libs)
test_unit_aggregator_test_SOURCES = $(unit_sources_aggregator)
nodist_EXTRA_test_unit_aggregator_test_SOURCES = linked_by_cxx.cc
test_unit_aggregator_test_LDADD = $(unit_libs)
test_unit_engine_test_SOURCES = $(unit_sources_engine)
nodist_EXTRA_test_unit_engine_test_SOURCES = linked_by_cxx.cc
test_unit_engine_test_LDADD = $(unit_libs)
# load_aggregator_clients(): engine_scripted_aggregator.h.
test_unit_engine_test_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=_ZN7hetcoll23load_aggregator_clientsEv
test_unit_emulated_gpu_test_SOURCES = $(unit_sources_emulated_gpu)
nodist_EXTRA_test_unit_emulated_gpu_test_SOURCES = linked_by_cxx.cc
test_unit_emulated_gpu_test_LDADD = emulated_gpu/libmachine.la -lgtest_main -lgtest -ldl
test_unit_topology_test_SOURCES = $(unit_sources_topology)
nodist_EXTRA_test_unit_topology_test_SOURCES = linked_by_cxx.cc
test_unit_topology_test_LDADD = $(unit_libs)
test_unit_topology_probe_test_SOURCES = $(unit_sources_topology_probe)
nodist_EXTRA_test_unit_topology_probe_test_SOURCES = linked_by_cxx.cc
test_unit_topology_probe_test_LDADD = $(unit_libs)
test_unit_wsp_test_SOURCES = $(unit_sources_wsp)
nodist_EXTRA_test_unit_wsp_test_SOURCES = linked_by_cxx.cc
test_unit_wsp_test_LDADD = libhetcoll_wsp_vectors.la $(unit_libs)
test_unit_tools_test_SOURCES = $(unit_sources_tools)
nodist_EXTRA_test_unit_tools_test_SOURCES = linked_by_cxx.cc
test_unit_tools_test_LDADD = libhetcoll_info.la libhetcoll_place.la libhetcoll_command_line.la $(unit_libs)
