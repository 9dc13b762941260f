hetcoll_sources += \
	tuning/arrivals.h tuning/arrivals.cc \
	tuning/build_schedule.h tuning/build_schedule.cc \
	tuning/choice.h tuning/choice.cc \
	tuning/chunk_tuner.h tuning/chunk_tuner.cc \
	tuning/collective_shape.h \
	tuning/common_table.h tuning/common_table.cc \
	tuning/cpu_limits.h \
	tuning/fingerprint.h tuning/fingerprint.cc \
	tuning/json_reader.h tuning/json_reader.cc tuning/json_walk.h tuning/json_walk.cc \
	tuning/node_slices.h tuning/node_slices.cc \
	tuning/parts.h tuning/parts.cc \
	tuning/price_table.h tuning/price_table.cc \
	tuning/rank_rings.h tuning/rank_rings.cc \
	tuning/rank_shares.h tuning/rank_shares.cc \
	tuning/rank_trees.h tuning/rank_trees.cc \
	tuning/table.h tuning/table.cc \
	tuning/table_file.h tuning/table_file.cc \
	tuning/table_parser.cc \
	tuning/topology_links.h tuning/topology_links.cc

hetcoll_tools_sources += \
	tuning/build_table.h tuning/build_table.cc \
	tuning/check_table.h tuning/check_table.cc \
	tuning/cluster_model.h tuning/cluster_model.cc \
	tuning/cpu_limits.cc \
	tuning/curves.h tuning/curves.cc \
	tuning/measurements.h tuning/measurements.cc \
	tuning/table_writer.cc \
	tuning/view_nodes.cc
