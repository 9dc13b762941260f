hetcoll_sources += \
	choice/arrivals.h choice/arrivals.cc \
	choice/call_prices.h choice/call_prices.cc \
	choice/choose.h choice/choose.cc \
	choice/chunk_tuner.h choice/chunk_tuner.cc \
	choice/collective_shape.h
