/* The bytes that a datatype names, as runs of equal pieces: what lies between is not touched. */
#include "coll_hetcoll.h"

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype_internal.h"

/* Merges the pieces of an element, which come in their order. */
struct pieces {
    struct hetcoll_run run; /* count 0: none yet */
    size_t runs, rows;      /* before that one */
    size_t longest;         /* bytes of a row */
    ptrdiff_t offset;       /* of the element */
    size_t repeat, extent;  /* nonzero: each piece is the first of a run of its own */
    hetcoll_take_run *take; /* NULL: they are counted */
    void *to;
};

static void flush(struct pieces *pieces)
{
    if (0 == pieces->run.count) {
        return;
    }
    pieces->runs += 1;
    pieces->rows += pieces->run.count;
    pieces->longest = pieces->longest > pieces->run.bytes ? pieces->longest : pieces->run.bytes;
    if (NULL != pieces->take) {
        pieces->run.offset += pieces->offset;
        pieces->take(pieces->to, &pieces->run);
    }
    pieces->run.count = 0;
}

/* Whether the piece belongs to the run, as its next row or, if it is the first, as its end. */
static bool extends(struct hetcoll_run *run, ptrdiff_t offset, size_t bytes)
{
    const ptrdiff_t stride = offset - run->offset;
    if (1 == run->count && stride == (ptrdiff_t)run->bytes) {
        run->bytes += bytes;
        return true;
    }
    if (0 == run->count || bytes != run->bytes || stride < (ptrdiff_t)bytes ||
        (1 < run->count && (size_t)stride != run->count * run->stride)) {
        return false;
    }
    run->stride = 1 == run->count ? (size_t)stride : run->stride;
    run->count += 1;
    return true;
}

/* Joins pieces that touch before it looks for rows. */
static void add(struct pieces *pieces, struct iovec *last, ptrdiff_t offset, size_t bytes)
{
    const ptrdiff_t end = (ptrdiff_t)last->iov_base + (ptrdiff_t)last->iov_len;
    if (0 < bytes && 0 < last->iov_len && end == offset) {
        last->iov_len += bytes;
        return;
    }
    if (0 < last->iov_len) {
        const ptrdiff_t at = (ptrdiff_t)last->iov_base;
        if (0 != pieces->repeat) {
            flush(pieces);
            pieces->run = (struct hetcoll_run){at, last->iov_len, pieces->extent, pieces->repeat};
        } else if (!extends(&pieces->run, at, last->iov_len)) {
            flush(pieces);
            pieces->run = (struct hetcoll_run){at, last->iov_len, 0, 1};
        }
    }
    *last = (struct iovec){(void *)offset, bytes};
}

/* The pieces of one element. */
static void walk(struct pieces *pieces, const ompi_datatype_t *dtype)
{
    enum { AT_ONCE = 64 };
    struct iovec vector[AT_ONCE], last = {NULL, 0};
    opal_convertor_t convertor;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    int complete = OPAL_SUCCESS !=
                   opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &dtype->super,
                                                            1, NULL, 0, &convertor);
    while (!complete) {
        uint32_t count = AT_ONCE;
        size_t bytes = 0;
        complete = opal_convertor_raw(&convertor, vector, &count, &bytes);
        for (uint32_t i = 0; i < count; ++i) {
            add(pieces, &last, (ptrdiff_t)vector[i].iov_base, vector[i].iov_len);
        }
    }
    OBJ_DESTRUCT(&convertor);
    add(pieces, &last, 0, 0);
    flush(pieces);
}

/* An element of many pieces and many elements of few: whichever way has fewer runs. */
void mca_coll_hetcoll_tell_runs(struct ompi_datatype_t *dtype, size_t count, ptrdiff_t offset,
                                hetcoll_take_run *take, void *to)
{
    ptrdiff_t lower_bound, extent;
    ompi_datatype_get_extent(dtype, &lower_bound, &extent);
    struct pieces counted = {.take = NULL};
    if (1 < count) {
        walk(&counted, dtype);
    }
    struct pieces pieces = {.take = take, .to = to, .offset = offset};
    if (1 < count && (ptrdiff_t)counted.longest <= extent && counted.rows < counted.runs * count) {
        pieces.repeat = count;
        pieces.extent = (size_t)extent;
        walk(&pieces, dtype);
        return;
    }
    for (size_t element = 0; element < count; ++element) {
        walk(&pieces, dtype);
        pieces.offset += extent;
    }
}
