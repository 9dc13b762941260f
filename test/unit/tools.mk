unit_sources_tools = \
	test/unit/tools_doctor_test.cc \
	test/unit/tools_json_test.cc \
	test/unit/tools_live_test.cc \
	test/unit/tools_place_test.cc \
	test/unit/tools_schedule_test.cc
