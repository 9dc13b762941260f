hetcoll_sources += \
	price/aggregators.h price/aggregators.cc \
	price/assumed.h price/assumed.cc \
	price/call_prices.h price/call_prices.cc \
	price/candidates.h price/candidates.cc \
	price/cluster.h price/cluster.cc \
	price/connections.h \
	price/events.h \
	price/feed.h price/feed.cc \
	price/link_clocks.h price/link_clocks.cc \
	price/machine.h price/machine.cc \
	price/meeting_time.h price/meeting_time.cc \
	price/placed.h price/placed.cc \
	price/platform.h \
	price/price.h price/price.cc \
	price/prices.h price/prices.cc \
	price/rank.h price/rank.cc price/rank_offers.cc \
	price/rank_plans.h price/rank_plans.cc \
	price/ranks.h price/ranks.cc \
	price/recorded.h price/recorded.cc \
	price/routes.h price/routes.cc \
	price/stand_ins.h price/stand_ins.cc \
	price/transfers.h \
	price/two_rules.h
