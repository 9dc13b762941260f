# hetcoll_sources += device/a.h device/a.cc
