hetcoll_sources +=
