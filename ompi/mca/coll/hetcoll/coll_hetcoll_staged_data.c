/* The data that each collective reads and writes on one rank, and its place in the buffers. */
#include "coll_hetcoll_staged.h"

/* Blocks [first, first + count) of a side with counts of its own, elements of a plain one. */
struct part {
    size_t first, count;
};
static const struct part nothing = {0, 0};

struct block {
    ompi_datatype_t *dtype;
    size_t count;
    ptrdiff_t offset; /* bytes from the buffer */
};

static struct block block_of(const struct hetcoll_side *side, struct part part, size_t i)
{
    ptrdiff_t lower_bound, extent;
    struct block block = {side->dtype, 0, 0};
    const size_t index = part.first + i;
    switch (side->layout) {
    case HETCOLL_PLAIN:
        ompi_datatype_get_extent(block.dtype, &lower_bound, &extent);
        block.count = part.count;
        block.offset = (ptrdiff_t)part.first * extent;
        break;
    case HETCOLL_BLOCKS:
        ompi_datatype_get_extent(block.dtype, &lower_bound, &extent);
        block.count = HETCOLL_COUNT_AT(side->counts, index);
        block.offset = HETCOLL_DISP_AT(side->disps, index) * extent;
        break;
    case HETCOLL_TYPED:
    case HETCOLL_OFFSETS:
        block.dtype = side->dtypes[index];
        block.count = HETCOLL_COUNT_AT(side->counts, index);
        block.offset = HETCOLL_TYPED == side->layout
                           ? HETCOLL_DISP_AT(side->disps, index)
                           : (ptrdiff_t)HETCOLL_DISP_AT(side->offsets, index);
        break;
    }
    return block;
}

static size_t blocks_in(const struct hetcoll_side *side, struct part part)
{
    return HETCOLL_PLAIN == side->layout && 0 < part.count ? 1 : part.count;
}

/* Bytes that a block spans, from *first on. */
static size_t span_of(const struct block *block, ptrdiff_t *first)
{
    ptrdiff_t gap = 0;
    const size_t span =
        0 == block->count ? 0 : opal_datatype_span(&block->dtype->super, block->count, &gap);
    *first = block->offset + gap;
    return span;
}

/* Where to look for what memory a part is in. */
struct ends {
    const void *first; /* byte of the part; NULL if it has none */
    const void *last;  /* byte of a block whose type has gaps, or NULL: memory of several kinds may
                          lie in one type */
};
static struct ends ends_of(const struct hetcoll_side *side, struct part part)
{
    struct ends ends = {NULL, NULL};
    if (HETCOLL_PLAIN == side->layout && OPAL_LIKELY(ompi_datatype_is_predefined(side->dtype))) {
        if (0 < part.count) { /* fast: every call of most programs comes here */
            ends.first = (const char *)side->buffer + block_of(side, part, 0).offset;
        }
        return ends;
    }
    const bool one_type = HETCOLL_PLAIN == side->layout || HETCOLL_BLOCKS == side->layout;
    for (size_t i = 0; i < blocks_in(side, part); ++i) {
        const struct block block = block_of(side, part, i);
        ptrdiff_t first;
        const size_t span = span_of(&block, &first);
        if (0 == span) {
            continue;
        }
        const char *const begin = (const char *)side->buffer + first;
        ends.first = NULL == ends.first ? begin : ends.first;
        if (!ompi_datatype_is_predefined(block.dtype)) {
            size_t size;
            ompi_datatype_type_size(block.dtype, &size);
            ends.last = span == size * block.count ? NULL : begin + span - 1;
            break;
        }
        if (one_type) {
            break;
        }
    }
    return ends;
}

struct taker {
    struct hetcoll_stage *stage;
    int use;
};
static void take_run(void *to, const struct hetcoll_run *run)
{
    const struct taker *taker = to;
    hetcoll_stage_run(taker->stage, run, taker->use);
}

/* Returns the bytes of data. */
static size_t describe(struct hetcoll_stage *stage, const struct hetcoll_side *side,
                       struct part part, int use)
{
    size_t bytes = 0;
    for (size_t i = 0; i < blocks_in(side, part); ++i) {
        const struct block block = block_of(side, part, i);
        ptrdiff_t first;
        const size_t span = span_of(&block, &first);
        if (0 == span) {
            continue;
        }
        size_t size;
        ompi_datatype_type_size(block.dtype, &size);
        bytes += size * block.count;
        if (span == size * block.count) {
            const struct hetcoll_run run = {first, span, 0, 1};
            hetcoll_stage_run(stage, &run, use);
        } else {
            struct taker taker = {stage, use};
            mca_coll_hetcoll_tell_runs(block.dtype, block.count, block.offset, take_run, &taker);
        }
    }
    return bytes;
}

/* This rank reads and writes these parts of a side. If the side is device memory, host memory takes
 * its place. */
static void use(struct hetcoll_staged_call *call, struct hetcoll_side *side, struct part read,
                struct part written)
{
    struct ends ends = ends_of(side, read);
    if (NULL == ends.first) {
        ends = ends_of(side, written);
    }
    if (NULL == ends.first || OMPI_SUCCESS != call->error) {
        return;
    }
    const bool leave =
        mca_coll_hetcoll_component.stage_mode == HETCOLL_STAGE_REDUCTIONS && !call->reduces;
    struct hetcoll_process *process = mca_coll_hetcoll_component.process;
    void *const buffer = (void *)(uintptr_t)side->buffer;
    int added = hetcoll_stage_add(process, &call->stage, buffer, ends.first, leave);
    if (0 == added && OPAL_UNLIKELY(NULL != ends.last)) {
        added = hetcoll_stage_add(process, &call->stage, buffer, ends.last, leave);
    }
    if (0 == added) {
        return;
    }
    if (0 < added) {
        const size_t in = describe(call->stage, side, read, HETCOLL_STAGE_READ);
        const size_t out = describe(call->stage, side, written, HETCOLL_STAGE_WRITTEN);
        call->bytes = call->bytes > in ? call->bytes : in;
        call->bytes = call->bytes > out ? call->bytes : out;
        side->buffer = hetcoll_stage_host(call->stage);
    }
    if (0 > added || NULL == side->buffer) {
        call->error = OMPI_ERR_OUT_OF_RESOURCE;
    }
}

static void reads(struct hetcoll_staged_call *call, struct part part)
{
    use(call, &call->send, part, nothing);
}
static void writes(struct hetcoll_staged_call *call, struct part part)
{
    use(call, &call->recv, nothing, part);
}

/* The blocks of ranks [first, first + count). */
static struct part blocks(const struct hetcoll_side *side, size_t first, size_t count)
{
    const size_t per_block = HETCOLL_PLAIN == side->layout ? side->count : 1;
    return (struct part){first * per_block, count * per_block};
}

static struct part elements(size_t count) { return (struct part){0, count}; }

static bool is_root(const struct hetcoll_staged_call *call) { return call->root == call->rank; }
static bool in_place(const struct hetcoll_side *side) { return MPI_IN_PLACE == side->buffer; }

void mca_coll_hetcoll_data_bcast(struct hetcoll_staged_call *call)
{
    const struct part all = elements(call->recv.count);
    use(call, &call->recv, is_root(call) ? all : nothing, is_root(call) ? nothing : all);
}

/* Into `recv` from `send`, or from one's own block of `recv`. */
void mca_coll_hetcoll_data_allgather(struct hetcoll_staged_call *call)
{
    const struct part all = blocks(&call->recv, 0, call->size);
    if (in_place(&call->send)) {
        use(call, &call->recv, blocks(&call->recv, call->rank, 1), all);
    } else {
        reads(call, elements(call->send.count));
        writes(call, all);
    }
}

void mca_coll_hetcoll_data_gather(struct hetcoll_staged_call *call)
{
    if (is_root(call)) {
        mca_coll_hetcoll_data_allgather(call);
    } else {
        reads(call, elements(call->send.count));
    }
}

void mca_coll_hetcoll_data_scatter(struct hetcoll_staged_call *call)
{
    if (is_root(call)) {
        reads(call, blocks(&call->send, 0, call->size));
    }
    if (!in_place(&call->recv)) {
        writes(call, elements(call->recv.count));
    }
}

void mca_coll_hetcoll_data_alltoall(struct hetcoll_staged_call *call)
{
    const struct part all = blocks(&call->recv, 0, call->size);
    if (in_place(&call->send)) {
        use(call, &call->recv, all, all);
    } else {
        reads(call, blocks(&call->send, 0, call->size));
        writes(call, all);
    }
}

/* Reads `in` elements, of `recv` in place, and writes `out`. */
static void reduces(struct hetcoll_staged_call *call, size_t in, size_t out)
{
    if (in_place(&call->send)) {
        use(call, &call->recv, elements(in), elements(out));
    } else {
        reads(call, elements(in));
        writes(call, elements(out));
    }
}

void mca_coll_hetcoll_data_reduce(struct hetcoll_staged_call *call)
{
    reduces(call, call->send.count, is_root(call) ? call->recv.count : 0);
}

void mca_coll_hetcoll_data_scan(struct hetcoll_staged_call *call)
{
    reduces(call, call->send.count, call->recv.count);
}

/* Rank 0 receives nothing: its receive buffer may be too short, or none at all. */
void mca_coll_hetcoll_data_exscan(struct hetcoll_staged_call *call)
{
    if (0 == call->rank && !in_place(&call->send)) {
        reads(call, elements(call->send.count));
    } else {
        mca_coll_hetcoll_data_scan(call);
    }
}

void mca_coll_hetcoll_data_reduce_scatter(struct hetcoll_staged_call *call)
{
    size_t all = 0;
    for (int rank = 0; rank < call->size; ++rank) {
        all += HETCOLL_COUNT_AT(call->recv.counts, rank);
    }
    reduces(call, all, HETCOLL_COUNT_AT(call->recv.counts, call->rank));
}

void mca_coll_hetcoll_data_reduce_scatter_block(struct hetcoll_staged_call *call)
{
    reduces(call, call->recv.count * call->size, call->recv.count);
}

void mca_coll_hetcoll_data_reduce_local(struct hetcoll_staged_call *call)
{
    const struct part all = elements(call->recv.count);
    reads(call, all);
    use(call, &call->recv, all, all);
}

/* How many neighbours send to this rank, and how many it sends to. */
static void count_neighbors(struct ompi_communicator_t *comm, int *sources, int *destinations)
{
    int dimensions = 0, weighted;
    *sources = *destinations = 0;
    if (OMPI_COMM_IS_CART(comm)) {
        (void)PMPI_Cartdim_get(comm, &dimensions);
        *sources = *destinations = 2 * dimensions;
    } else if (OMPI_COMM_IS_GRAPH(comm)) {
        (void)PMPI_Graph_neighbors_count(comm, ompi_comm_rank(comm), sources);
        *destinations = *sources;
    } else if (OMPI_COMM_IS_DIST_GRAPH(comm)) {
        (void)PMPI_Dist_graph_neighbors_count(comm, sources, destinations, &weighted);
    }
}

/* Blocks of neighbours that do not exist, at the end of a grid, keep what they hold. */
static void receives_from_neighbors(struct hetcoll_staged_call *call, int sources)
{
    const struct part all = blocks(&call->recv, 0, sources);
    use(call, &call->recv, all, all);
}

void mca_coll_hetcoll_data_neighbor_allgather(struct hetcoll_staged_call *call)
{
    int sources, destinations;
    count_neighbors(call->comm, &sources, &destinations);
    reads(call, elements(call->send.count));
    receives_from_neighbors(call, sources);
}

void mca_coll_hetcoll_data_neighbor_alltoall(struct hetcoll_staged_call *call)
{
    int sources, destinations;
    count_neighbors(call->comm, &sources, &destinations);
    reads(call, blocks(&call->send, 0, destinations));
    receives_from_neighbors(call, sources);
}
