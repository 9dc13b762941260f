unit_sources_emulated_gpu = \
	test/unit/emulated_gpu_capture_test.cc \
	test/unit/emulated_gpu_contexts_test.cc \
	test/unit/emulated_gpu_dead_handles_test.cc \
	test/unit/emulated_gpu_direct_rdma_test.cc \
	test/unit/emulated_gpu_driver.cc \
	test/unit/emulated_gpu_driver.h \
	test/unit/emulated_gpu_driver_versions_test.cc \
	test/unit/emulated_gpu_faults_test.cc \
	test/unit/emulated_gpu_footprint_test.cc \
	test/unit/emulated_gpu_held_calls_test.cc \
	test/unit/emulated_gpu_hostile_waits_test.cc \
	test/unit/emulated_gpu_hostility_test.cc \
	test/unit/emulated_gpu_ipc_test.cc \
	test/unit/emulated_gpu_kernels_test.cc \
	test/unit/emulated_gpu_link_clock_test.cc \
	test/unit/emulated_gpu_links_test.cc \
	test/unit/emulated_gpu_machine_test.cc \
	test/unit/emulated_gpu_memory_test.cc \
	test/unit/emulated_gpu_node_test.cc \
	test/unit/emulated_gpu_nvml_test.cc \
	test/unit/emulated_gpu_settings_test.cc \
	test/unit/emulated_gpu_sharing_test.cc \
	test/unit/emulated_gpu_streams_test.cc \
	test/unit/emulated_gpu_vmm_test.cc
