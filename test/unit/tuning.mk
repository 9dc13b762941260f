unit_sources_tuning = \
	test/unit/tuning_choice_test.cc
