/* What Open MPI opens outside of its own tree, whichever Open MPI it is. This file needs nothing of
 * Open MPI's: otherwise the dynamic loader refuses it in another series than hetcoll was built for,
 * with a line of Open MPI's a rank. The component lies next to it, in a file that Open MPI does not
 * look at. */
#include "coll_hetcoll.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "ompi/constants.h"

#define COMPONENT "hetcoll_component.so"

static int load(void);

/* Until load() puts the component's own in its place. */
mca_coll_hetcoll_component_t mca_coll_hetcoll_component = {
    .super.collm_version =
        {
            HETCOLL_COLL_VERSION,
            .mca_component_name = "hetcoll",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                  OMPI_RELEASE_VERSION),
            .mca_register_component_params = load,
        },
};
#ifdef MCA_BASE_COMPONENT_INIT
MCA_BASE_COMPONENT_INIT(ompi, coll, hetcoll)
#endif

/* NULL: dlerror() says why. */
static const mca_coll_hetcoll_component_t *open_component(void)
{
    Dl_info self;
    char path[4096];
    if (0 == dladdr((void *)(uintptr_t)load, &self) || NULL == self.dli_fname) {
        return NULL;
    }
    const char *slash = strrchr(self.dli_fname, '/');
    const int folder = NULL == slash ? 0 : (int)(slash + 1 - self.dli_fname);
    if ((int)sizeof path <= snprintf(path, sizeof path, "%.*s" COMPONENT, folder, self.dli_fname)) {
        return NULL;
    }
    void *component = dlopen(path, RTLD_LAZY | RTLD_GLOBAL); /* as Open MPI does; for good */
    return NULL == component ? NULL : dlsym(component, "mca_coll_hetcoll_component");
}

/* Register: the first of our functions that any Open MPI calls. */
static int load(void)
{
    const mca_coll_hetcoll_component_t *component = open_component();
    if (NULL == component) {
        const char *why = dlerror();
        if (mca_coll_hetcoll_speaks_for_node()) {
            fprintf(stderr,
                    "hetcoll was built for Open MPI %d.%d.%d and cannot be loaded here (%s): "
                    "hetcoll steps aside, rebuild it for this release\n",
                    OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION,
                    NULL == why ? "no " COMPONENT : why);
        }
        return OMPI_ERR_NOT_AVAILABLE;
    }
    mca_coll_hetcoll_component.super = component->super;
    return component->super.collm_version.mca_register_component_params();
}
