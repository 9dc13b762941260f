/* Makes the literal `mpirun --mca coll hetcoll` a complete selection.
 *
 * Open MPI keeps only the named components and refuses a communicator with any empty function slot.
 * When our register function runs, the framework has only hetcoll in its list. We bring the others
 * back:
 *   1. widen the selection, or the framework would drop at open what we add;
 *   2. let the MCA base find every component;
 *   3. put the new ones *before* us in the list. The framework's loop over the list only moves
 * forward, so it does not see them, and we register each exactly once; its later loop opens them as
 * usual. */
#include "coll_hetcoll.h"

#include <string.h>

#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_framework.h"
#include "opal/util/argv.h"

typedef mca_base_component_list_item_t item_t;

static bool selects_only_hetcoll(const char *selection)
{
    char **names = opal_argv_split(selection, ',');
    bool only = names != NULL;
    for (char **name = names; name != NULL && *name != NULL; ++name) {
        only = only && 0 == strcmp(*name, "hetcoll");
    }
    opal_argv_free(names);
    return only;
}

static bool is_wanted(const char *selection)
{
    if (NULL == selection || '\0' == selection[0] || '^' == selection[0]) {
        return false; /* the others are there already */
    }
    return HETCOLL_FALLBACK_NEVER != mca_coll_hetcoll_component.settings.fallback &&
           selects_only_hetcoll(selection);
}

static bool is_listed(opal_list_t *list, const mca_base_component_t *component)
{
    item_t *item;
    OPAL_LIST_FOREACH (item, list, item_t) {
        if (item->cli_component == component) {
            return true;
        }
    }
    return false;
}

int mca_coll_hetcoll_bring_fallback(void)
{
    mca_base_framework_t *framework = &ompi_coll_base_framework;
    opal_list_t *list = &framework->framework_components;
    if (!is_wanted(framework->framework_selection)) {
        return OMPI_SUCCESS;
    }

    const int selection = mca_base_var_find("ompi", "coll", NULL, NULL);
    if (0 > selection) {
        return OMPI_ERROR;
    }
    int rc = mca_base_var_set_value(selection, "", 1, MCA_BASE_VAR_SOURCE_SET, NULL);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }

    item_t *item;
    OPAL_LIST_FOREACH (item, list, item_t) {
        if (0 != strcmp(item->cli_component->mca_component_name, "hetcoll")) {
            return OMPI_SUCCESS; /* ompi_info and MPI_T have registered everything already */
        }
    }

    opal_list_item_t *last = opal_list_get_last(list);
    rc = mca_base_component_find(NULL, framework, true, true);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    item_t *next;
    for (item = (item_t *)opal_list_get_next(last); item != (item_t *)opal_list_get_end(list);
         item = next) {
        const mca_base_component_t *component = item->cli_component;
        next = (item_t *)opal_list_get_next(&item->super);
        opal_list_remove_item(list, &item->super);
        if (is_listed(list, component) /* ourselves, when built into the library */
            || (NULL != component->mca_register_component_params &&
                OPAL_SUCCESS != component->mca_register_component_params())) {
            OBJ_RELEASE(item);
            continue;
        }
        opal_list_prepend(list, &item->super);
    }
    return OMPI_SUCCESS;
}
