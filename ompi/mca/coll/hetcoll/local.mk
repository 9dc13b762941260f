# What make builds into the component beside the core.
component_sources = \
	ompi/mca/coll/hetcoll/coll_hetcoll.h \
	ompi/mca/coll/hetcoll/coll_hetcoll_allreduce.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_collectives.h ompi/mca/coll/hetcoll/coll_hetcoll_collectives.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_component.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_counters.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_events.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_facts.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_fallback.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_info.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_layout.h ompi/mca/coll/hetcoll/coll_hetcoll_layout.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_module.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_nonblocking.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_p2p.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_parameters.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_refusal.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_request.h ompi/mca/coll/hetcoll/coll_hetcoll_request.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_runs.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_staged.h ompi/mca/coll/hetcoll/coll_hetcoll_staged.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_staged_call.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_staged_data.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_stream.c include/hetcoll_stream.h \
	ompi/mca/coll/hetcoll/coll_hetcoll_story.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_types.c \
	ompi/mca/coll/hetcoll/coll_hetcoll_watch.c
