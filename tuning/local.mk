hetcoll_sources += \
	tuning/build_schedule.h tuning/build_schedule.cc \
	tuning/choice.h tuning/choice.cc \
	tuning/cluster_model.h tuning/cluster_model.cc \
	tuning/fingerprint.h tuning/fingerprint.cc \
	tuning/json_reader.h tuning/json_reader.cc \
	tuning/model.h tuning/model.cc \
	tuning/table.h tuning/table.cc \
	tuning/table_file.h tuning/table_file.cc \
	tuning/table_parser.cc tuning/table_writer.cc
hetcoll_sources += tuning/rank_trees.h tuning/rank_trees.cc
