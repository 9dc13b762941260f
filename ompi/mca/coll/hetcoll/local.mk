# What make builds into mca_coll_hetcoll.so beside the core.
component_sources =
component_help =
