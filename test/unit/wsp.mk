unit_sources_wsp = \
	test/unit/wsp_vectors_test.cc \
	test/unit/wsp_wave_clock_test.cc
