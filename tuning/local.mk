hetcoll_sources += \
	tuning/arrivals.h tuning/arrivals.cc \
	tuning/choice.h tuning/choice.cc \
	tuning/chunk_tuner.h tuning/chunk_tuner.cc \
	tuning/collective_shape.h \
	tuning/common_table.h tuning/common_table.cc \
	tuning/json_reader.h tuning/json_reader.cc tuning/json_walk.h tuning/json_walk.cc \
	tuning/price_table.h tuning/price_table.cc \
	tuning/table.h tuning/table.cc \
	tuning/table_file.h tuning/table_file.cc \
	tuning/table_parser.cc

hetcoll_tools_sources += \
	tuning/build_table.h tuning/build_table.cc \
	tuning/check_table.h tuning/check_table.cc \
	tuning/cluster_model.h tuning/cluster_model.cc \
	tuning/curves.h tuning/curves.cc \
	tuning/measurements.h tuning/measurements.cc \
	tuning/table_writer.cc
