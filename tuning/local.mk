hetcoll_sources += \
	tuning/common_table.h tuning/common_table.cc \
	tuning/json_reader.h tuning/json_reader.cc tuning/json_walk.h tuning/json_walk.cc \
	tuning/table.h tuning/table.cc \
	tuning/table_file.h tuning/table_file.cc \
	tuning/table_parser.cc

hetcoll_tools_sources += \
	tuning/build_table.h tuning/build_table.cc \
	tuning/check_table.h tuning/check_table.cc \
	tuning/curves.h tuning/curves.cc \
	tuning/measurements.h tuning/measurements.cc \
	tuning/table_writer.cc
