# Micro-benchmarks, built on demand. They run on whatever libcuda.so.1 is found:
# make micro-benchmarks && bench/kernel_bench
micro_benchmarks = bench/cpu_path_bench bench/price_bench bench/tree_packing_bench bench/dgx1_classes
if WITH_OMPI
micro_benchmarks += bench/counted_calls bench/overlap_bench bench/stream_bench bench/wsp_bench
endif
# Those that have tests.
checked_benchmarks = bench/gpu_ranks_bench
if HAVE_BENCH_HEADERS
checked_benchmarks += bench/kernel_bench
endif
if HAVE_BENCHMARK
micro_benchmarks += bench/pointer_cache_bench
endif
if WITH_CUDA
EXTRA_PROGRAMS += $(micro_benchmarks)
micro-benchmarks: $(BUILT_SOURCES)
	$(MAKE) $(AM_MAKEFLAGS) $(micro_benchmarks) $(checked_benchmarks)
endif
measure/micro.$(OBJEXT): measure/commit.h
bench_pointer_cache_bench_SOURCES = bench/pointer_cache_bench.cc $(measure_micro)
nodist_bench_pointer_cache_bench_SOURCES = measure/commit.h
bench_pointer_cache_bench_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
bench_pointer_cache_bench_LDADD = libhetcoll.la -lbenchmark
bench_cpu_path_bench_SOURCES = \
	bench/cpu_path_bench.cc measure/cpu_path.h measure/cpu_path.cc $(measure_micro)
nodist_bench_cpu_path_bench_SOURCES = measure/commit.h
bench_cpu_path_bench_LDADD = libhetcoll_tools.la libhetcoll.la
bench_kernel_bench_SOURCES = \
	bench/kernel_bench.cc \
	bench/cublas_library.h bench/cublas_library.cc \
	bench/flagged_sum.h bench/flagged_sum.cc \
	bench/kernel_blocks.h bench/kernel_blocks.cc \
	bench/matmul_blocks.h bench/matmul_blocks.cc \
	bench/peer_vectors.h bench/peer_vectors.cc \
	test/gpu/small_numbers.h \
	$(measure_micro)
nodist_bench_kernel_bench_SOURCES = measure/commit.h
bench_kernel_bench_LDADD = libhetcoll_command_line.la libhetcoll.la
bench_price_bench_SOURCES = bench/price_bench.cc $(measure_micro)
nodist_bench_price_bench_SOURCES = measure/commit.h
bench_price_bench_LDADD = libhetcoll_tools.la libhetcoll.la
bench_stream_bench_SOURCES = bench/stream_bench.cc
bench_stream_bench_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
bench_stream_bench_LDADD = libhetcoll_measure.la libhetcoll.la $(MPI_LIBS)
bench_counted_calls_SOURCES = bench/counted_calls.cc
bench_counted_calls_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
bench_counted_calls_LDADD = libhetcoll_measure.la libhetcoll.la $(MPI_LIBS)
bench_overlap_bench_SOURCES = bench/overlap_bench.cc
bench_overlap_bench_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
bench_overlap_bench_LDADD = libhetcoll_measure.la libhetcoll.la $(MPI_LIBS)
bench_wsp_bench_SOURCES = bench/wsp_bench.cc
bench_wsp_bench_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
bench_wsp_bench_LDADD = libhetcoll_wsp.la libhetcoll_machine.la libhetcoll_measure.la libhetcoll_command_line.la libhetcoll.la $(MPI_LIBS)
bench_tree_packing_bench_SOURCES = \
	bench/tree_packing_bench.cc test/unit/topology_dgx1.h test/unit/topology_dgx1.cc $(measure_micro)
nodist_bench_tree_packing_bench_SOURCES = measure/commit.h
bench_tree_packing_bench_LDADD = libhetcoll.la
bench_dgx1_classes_SOURCES = \
	bench/dgx1_classes.cc test/unit/topology_dgx1.h test/unit/topology_dgx1.cc $(measure_micro)
nodist_bench_dgx1_classes_SOURCES = measure/commit.h
bench_dgx1_classes_LDADD = libhetcoll.la
bench_gpu_ranks_bench_SOURCES = \
	bench/gpu_ranks_bench.cc bench/gpu_ranks.h bench/gpu_ranks.cc \
	bench/nccl_library.h bench/nccl_library.cc measure/sizes.h measure/sizes.cc \
	$(process_ranks) $(measure_micro)
nodist_bench_gpu_ranks_bench_SOURCES = measure/commit.h
bench_gpu_ranks_bench_LDADD = libhetcoll.la
CLEANFILES += $(micro_benchmarks)
