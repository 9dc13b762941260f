unit_sources_base = \
	test/unit/child.h \
	test/unit/base_element_test.cc \
	test/unit/base_file_mark_test.cc \
	test/unit/base_hash_test.cc \
	test/unit/base_installed_test.cc \
	test/unit/base_log_test.cc \
	test/unit/base_status_test.cc
