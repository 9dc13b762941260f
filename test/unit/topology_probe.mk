unit_sources_topology_probe = \
	test/unit/emulated_gpu_driver.h test/unit/emulated_gpu_driver.cc \
	test/unit/topology_machines.h \
	test/unit/topology_probe_boxes.h \
	test/unit/topology_probe_driver.h \
	test/unit/topology_probe_fake_nvml.h \
	test/unit/topology_probe_hwloc_xml_test.cc \
	test/unit/topology_probe_measure_test.cc \
	test/unit/topology_probe_nvlinks_test.cc \
	test/unit/topology_probe_nvml.h \
	test/unit/topology_probe_rank_test.cc \
	test/unit/topology_probe_sys.h \
	test/unit/topology_probe_sys_files_test.cc \
	test/unit/topology_probe_xml.h test/unit/topology_probe_xml.cc

if WITH_CUDA
check_LTLIBRARIES += test/unit/libfake_nvml.la
endif
test_unit_libfake_nvml_la_SOURCES = \
	test/unit/topology_probe_fake_nvml.cc test/unit/topology_probe_fake_nvml.h \
	topology/ids.h topology/ids.cc
test_unit_libfake_nvml_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version \
	-rpath $(abs_builddir)/test/unit
test_unit_topology_probe_test_DEPENDENCIES = libhetcoll.la test/unit/libfake_nvml.la
