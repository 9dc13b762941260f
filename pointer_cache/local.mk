# hetcoll_sources += pointer_cache/a.h pointer_cache/a.cc
