#include "engine/types/facts.h"

void hetcoll_facts_merge(struct hetcoll_facts *into, const struct hetcoll_facts *other)
{
    int vital_differ = into->protocol != other->protocol;
#define HETCOLL_PARAMETER HETCOLL_PARAMETER_AS_FACT
#define HETCOLL_FACT_LEAST(name) into->name = other->name < into->name ? other->name : into->name;
#define HETCOLL_FACT_MOST(name) into->name = other->name > into->name ? other->name : into->name;
#define HETCOLL_FACT_VITAL(name) vital_differ |= into->name != other->name;
#define HETCOLL_FACT_SAME(name)                                                  \
    into->name##_differs |= other->name##_differs | (into->name != other->name); \
    into->name = into->name##_differs != 0 ? 0 : into->name;
    HETCOLL_FACTS
#undef HETCOLL_FACT_LEAST
#undef HETCOLL_FACT_MOST
#undef HETCOLL_FACT_VITAL
#undef HETCOLL_FACT_SAME
#undef HETCOLL_PARAMETER
    if (vital_differ) { /* protocol 0 stands for "no common one" and stays */
        into->protocol = 0;
    }
}
