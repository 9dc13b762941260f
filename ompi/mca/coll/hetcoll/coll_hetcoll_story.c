/* coll_hetcoll_verbose 1: how a job's story begins, one line a node: what hetcoll is, where, and
 * what the user has set. The rest is told by engine/communicator/story.cc, and each fact once. */
#include "coll_hetcoll.h"

#include "hetcoll_config.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_var.h"

/* Made by make, which asks git; not in Open MPI's source tree. */
#ifdef __has_include
#if __has_include(<measure/commit.h>)
#include <measure/commit.h>
#endif
#endif
#ifndef HETCOLL_COMMIT
#define HETCOLL_COMMIT "release"
#endif

struct text {
    char line[1024];
    size_t length;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *format, ...)
{
    const size_t room = sizeof text->line - text->length;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text->line + text->length, room, format, arguments);
    va_end(arguments);
    if (0 <= length) {
        text->length += (size_t)length < room ? (size_t)length : room - 1;
    }
}

/* Who has set it, in mpirun's words; NULL: nobody. */
static const char *set_by(const char *name)
{
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    const int index = mca_base_var_find("ompi", "coll", "hetcoll", name);
    if (0 > index || OPAL_SUCCESS != mca_base_var_get_value(index, NULL, &source, NULL)) {
        return NULL;
    }
    switch (source) {
    case MCA_BASE_VAR_SOURCE_DEFAULT: return NULL;
    case MCA_BASE_VAR_SOURCE_COMMAND_LINE:
    case MCA_BASE_VAR_SOURCE_ENV: return "--mca or environment";
    case MCA_BASE_VAR_SOURCE_FILE:
    case MCA_BASE_VAR_SOURCE_OVERRIDE: return "a file";
    default: return "the program";
    }
}

static void add_set(struct text *text, const char *name, const char *by)
{
    add(text, "%s coll_hetcoll_%s (%s) = ", NULL == strstr(text->line, "; set:") ? "; set:" : ",",
        name, by);
}

#define ADD_BOOL(name) add(text, "%s", c->settings.name ? "true" : "false")
#define ADD_INT(name) add(text, "%d", c->settings.name)
#define ADD_BYTES(name) add(text, "%lu", (unsigned long)c->settings.name)
#define ADD_TEXT(name) add(text, "%s", NULL == c->settings.name ? "" : c->settings.name)
#define ADD_WORD(name) add(text, "%s", c->words.name)

static void add_parameters(struct text *text, const mca_coll_hetcoll_component_t *c)
{
    const char *by;
#define HETCOLL_PARAMETER(kind, name, ...) \
    if (NULL != (by = set_by(#name))) {    \
        add_set(text, #name, by);          \
        ADD_##kind(name);                  \
    }
    HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER
}

void mca_coll_hetcoll_begin_story(void)
{
    const mca_coll_hetcoll_component_t *c = &mca_coll_hetcoll_component;
    (void)mca_coll_hetcoll_speaker(); /* before there are threads */
    if (1 > c->settings.verbose || 0 != c->settings.local_rank) {
        return;
    }
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",")] = '\0';
    struct text text = {.length = 0};
    add(&text, "hetcoll: version %s (%s) in %s", HETCOLL_VERSION, HETCOLL_COMMIT, library);
    add_parameters(&text, c);
    mca_coll_hetcoll_log(1, text.line);
}

enum { MOST_FACTS = 512 };

/* Communicators have most facts in common, so equal lines come up with each. A set of hashes, which
 * several threads may ask; a line that finds no place in it is told again. */
bool mca_coll_hetcoll_was_told(const char *line)
{
    static uint64_t told[MOST_FACTS];    /* 0: free */
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; '\0' != *line; ++line) {
        hash = (hash ^ (unsigned char)*line) * 0x100000001b3u;
    }
    hash |= 1;
    for (uint64_t i = 0; i < MOST_FACTS; ++i) {
        uint64_t *place = &told[((hash >> 1) + i) % MOST_FACTS], there = 0;
        if (__atomic_compare_exchange_n(place, &there, hash, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            return false;
        }
        if (there == hash) {
            return true;
        }
    }
    return false;
}

/* "node17:3 ", as the lines of the story begin. */
const char *mca_coll_hetcoll_speaker(void)
{
    static char speaker[80];
    if ('\0' == speaker[0]) {
        char host[64] = "";
        gethostname(host, sizeof host - 1);
        host[strcspn(host, ".")] = '\0';
        snprintf(speaker, sizeof speaker, "%s:%d ", host, mca_coll_hetcoll_component.settings.rank);
    }
    return speaker;
}
