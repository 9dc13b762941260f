# hetcoll_sources += engine/a.h engine/a.cc
