hetcoll_sources += \
	device/device.h device/device.cc \
	device/driver.h device/driver.cc
