hetcoll_sources += \
	price/aggregators.h price/aggregators.cc \
	price/connections.h \
	price/events.h \
	price/feed.h price/feed.cc \
	price/hierarchy_prices.cc \
	price/link_clocks.h price/link_clocks.cc \
	price/meeting_time.h price/meeting_time.cc \
	price/price.h price/price.cc \
	price/price_table.h price/price_table.cc \
	price/prices.h price/prices.cc \
	price/rank.h price/rank.cc price/rank_feed.cc price/rank_offers.cc \
	price/rank_plans.h price/rank_plans.cc \
	price/recorded.h price/recorded.cc \
	price/stand_ins.h price/stand_ins.cc \
	price/transfers.h \
	price/two_rules.h

hetcoll_tools_sources += \
	price/cluster_model.h price/cluster_model.cc
