/* image_check.c: checks that the rest of the runtime can read an image without further checks.
 *
 * Every offset, count and index is checked here, once, when a module is loaded. After that the
 * other files follow offsets freely. Tables must be aligned to their elements, strings terminated
 * within the image. */
#include "runtime/contract/leaf.h"
#include "runtime/runtime.h"

/* Tables lie one after another and are read where they are: a row keeps the next one aligned. */
_Static_assert(sizeof(tile_image_header) % 8 == 0 && sizeof(tile_image_kernel) % 8 == 0 &&
                   sizeof(tile_image_dim) % 8 == 0 && sizeof(tile_image_test) % 8 == 0 &&
                   sizeof(tile_hx_ins) % 8 == 0,
               "rows with 64-bit fields");
_Static_assert(sizeof(tile_image_param) % 4 == 0 && sizeof(tile_image_sym) % 4 == 0 &&
                   sizeof(tile_image_slot) % 4 == 0 && sizeof(tile_image_expr) % 4 == 0 &&
                   sizeof(tile_image_site) % 4 == 0,
               "rows with 32-bit fields");
_Static_assert((int)TILE_IMAGE_MAX_RANK == (int)TILE_MAX_RANK,
               "views of a launch have the image's ranks");

typedef struct check {
    const char *data;
    uint64_t size;
    const char *what; /* the first thing wrong; NULL = nothing */
} check;

static bool bad(check *c, const char *what)
{
    if (!c->what)
        c->what = what;
    return false;
}

/* n elements of `size` bytes at `offset`, aligned. Empty tables may lie anywhere. */
static bool table(check *c, uint64_t offset, uint64_t n, uint64_t size, uint64_t align,
                  const char *what)
{
    if (n == 0)
        return true;
    if (offset % align != 0 || offset > c->size || n > (c->size - offset) / size)
        return bad(c, what);
    return true;
}

static bool text(check *c, uint32_t offset)
{
    if (offset >= c->size || !memchr(c->data + offset, 0, c->size - offset))
        return bad(c, "a text lies outside");
    return true;
}

static const void *at(const check *c, uint32_t offset)
{
    return c->data + offset;
}

static bool check_dims(check *c, const tile_image_kernel *k, const tile_image_param *p)
{
    if (p->rank < 1 || p->rank > TILE_IMAGE_MAX_RANK)
        return bad(c, "a view's rank");
    if (!table(c, p->dims, 2 * (uint64_t)p->rank, sizeof(tile_image_dim), 8, "a view's extents"))
        return false;
    const tile_image_dim *dims = at(c, p->dims);
    for (uint32_t i = 0; i < 2 * p->rank; i++) {
        const tile_image_dim *d = &dims[i];
        bool stride = i % 2 == 1;
        bool fine = d->kind == TILE_DIM_CONST || (d->kind == TILE_DIM_DENSE && stride) ||
                    (d->kind == TILE_DIM_SYM && d->value >= 0 && d->value < k->nsyms) ||
                    (d->kind == TILE_DIM_EXPR && d->value >= 0 && d->value < k->nexprs);
        if (!fine)
            return bad(c, "an extent or stride");
    }
    return true;
}

static bool check_params(check *c, const tile_image_kernel *k)
{
    if (k->nparams > TL_MAX_PARAMS)
        return bad(c, "too many parameters");
    if (!table(c, k->params, k->nparams, sizeof(tile_image_param), 4, "the parameters"))
        return false;
    const tile_image_param *p = at(c, k->params);
    for (uint32_t i = 0; i < k->nparams; i++) {
        if (!text(c, p[i].name))
            return false;
        if (p[i].kind > TILE_PARAM_SCALAR || !tl_dtype_known((int)p[i].dtype))
            return bad(c, "a parameter's kind or type");
        if (p[i].kind == TILE_PARAM_VIEW && !check_dims(c, k, &p[i]))
            return false;
        if (p[i].value && !table(c, p[i].value, 1, sizeof(uint64_t), 8, "a parameter's default"))
            return false;
    }
    return true;
}

static bool is_view_axis(const check *c, const tile_image_kernel *k, uint32_t param, uint32_t axis)
{
    const tile_image_param *p = at(c, k->params);
    return param < k->nparams && p[param].kind == TILE_PARAM_VIEW && axis < p[param].rank;
}

static bool check_syms(check *c, const tile_image_kernel *k)
{
    if (k->nsyms > TL_MAX_SYMS)
        return bad(c, "too many names of extents");
    if (!table(c, k->syms, k->nsyms, sizeof(tile_image_sym), 4, "the names of extents"))
        return false;
    const tile_image_sym *s = at(c, k->syms);
    for (uint32_t i = 0; i < k->nsyms; i++) {
        if (!text(c, s[i].name))
            return false;
        if (!is_view_axis(c, k, s[i].param, s[i].axis))
            return bad(c, "a name of an extent");
    }
    return true;
}

/* A tensor map that a driver may take: TILE_SLOT_MAP. */
static bool is_map(const check *c, const tile_image_kernel *k, const tile_image_slot *s)
{
    enum { MOST_RANK = 5, MOST_BOX = 256 }; /* of a tensor map; rows of its box */
    const tile_image_param *p = (const tile_image_param *)at(c, k->params) + s->param;
    uint32_t row = s->axis & 15, other = s->axis >> 4 & 15, span = s->axis >> 8 & 255;
    uint32_t columns = s->box & 0xffff, rows = s->box >> 16;
    uint32_t bits = (uint32_t)tile_dtype_bits((tile_dtype)p->dtype);
    bool wide = s->axis & TILE_MAP_WIDE;
    if (s->axis >> 16 != (wide ? TILE_MAP_WIDE >> 16 : 0) || (wide && span != 128))
        return false;
    bool bytes = bits >= 8 || row + 1 == p->rank; /* packed elements lie along the last axis */
    bits = bits < 8 ? 8 : bits;
    return p->kind == TILE_PARAM_VIEW && p->rank <= MOST_RANK && row < p->rank && other < p->rank &&
           row != other && (span == 128 || span == 64 || span == 32) && bytes &&
           columns * bits == span * 8 && rows > 0 && rows <= MOST_BOX;
}

/* Views that no map can be made of take another row: there must be tests, so that there may be
 * one. */
static bool check_maps(check *c, const tile_image_kernel *k)
{
    const tile_image_slot *s = at(c, k->slots);
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->nslots; i++)
        if (s[i].kind == TILE_SLOT_MAP && (++n > TL_MAX_MAPS || !is_map(c, k, &s[i])))
            return bad(c, "a slot's tensor map");
    return n == 0 || k->ntests > 0 || bad(c, "tensor maps of any arguments");
}

static bool check_slots(check *c, const tile_image_kernel *k)
{
    if (k->nslots > TL_MAX_SLOTS)
        return bad(c, "too many slots");
    if (!table(c, k->slots, k->nslots, sizeof(tile_image_slot), 4, "the slots"))
        return false;
    const tile_image_slot *s = at(c, k->slots);
    const tile_image_param *p = at(c, k->params);
    for (uint32_t i = 0; i < k->nslots; i++) {
        bool of_param = s[i].kind <= TILE_SLOT_BYTES || s[i].kind == TILE_SLOT_MAP;
        if (s[i].kind > TILE_SLOT_MINUS_NPID || (of_param && s[i].param >= k->nparams))
            return bad(c, "a slot");
        bool of_grid = s[i].kind == TILE_SLOT_NPID || s[i].kind == TILE_SLOT_BY_NPID ||
                       s[i].kind == TILE_SLOT_MINUS_NPID;
        if (of_grid && s[i].axis >= TILE_MAX_GRID)
            return bad(c, "a slot's axis");
        if (s[i].kind == TILE_SLOT_DIES && (s[i].param == 0 || s[i].param > INT32_MAX))
            return bad(c, "a slot's number of dies");
        if (!of_param)
            continue; /* of the launch, not of a parameter */
        bool axis = s[i].kind == TILE_SLOT_EXTENT || s[i].kind == TILE_SLOT_STRIDE;
        if (axis && !is_view_axis(c, k, s[i].param, s[i].axis))
            return bad(c, "a slot's axis");
        if ((s[i].kind == TILE_SLOT_SCALAR) != (p[s[i].param].kind == TILE_PARAM_SCALAR))
            return bad(c, "a slot's kind");
    }
    return check_maps(c, k);
}

static bool only_scalars(const check *c, const tile_image_kernel *k, const tile_hx_ins *code,
                         uint32_t n)
{
    const tile_image_param *p = at(c, k->params);
    for (uint32_t i = 0; i < n; i++)
        if (code[i].op == TILE_HX_ARG && p[code[i].imm].kind != TILE_PARAM_SCALAR)
            return false;
    return true;
}

static bool check_exprs(check *c, const tile_image_kernel *k)
{
    if (!table(c, k->exprs, k->nexprs, sizeof(tile_image_expr), 4, "the expressions"))
        return false;
    const tile_image_expr *e = at(c, k->exprs);
    const tile_image_header *h = at(c, 0);
    for (uint32_t i = 0; i < k->nexprs; i++) {
        if (!text(c, e[i].text) ||
            !table(c, e[i].code, e[i].ncode, sizeof(tile_hx_ins), 8, "an expression's code"))
            return false;
        const tile_hx_ins *code = at(c, e[i].code);
        if (!tl_hostexpr_valid(code, e[i].ncode, k->nsyms, k->nparams) ||
            !only_scalars(c, k, code, e[i].ncode))
            return bad(c, "an expression");
        if (h->nfiles > 0 && e[i].file >= h->nfiles)
            return bad(c, "an expression's file");
    }
    return true;
}

static bool check_indices(check *c, const tile_image_kernel *k, uint32_t offset, uint32_t n)
{
    if (!table(c, offset, n, sizeof(uint32_t), 4, "a list of expressions"))
        return false;
    const uint32_t *index = at(c, offset);
    for (uint32_t i = 0; i < n; i++)
        if (index[i] >= k->nexprs)
            return bad(c, "a list of expressions");
    return true;
}

static bool check_clauses(check *c, const tile_image_kernel *k)
{
    if (k->ngrid > TILE_MAX_GRID)
        return bad(c, "the grid");
    for (uint32_t i = 0; i < k->ngrid; i++)
        if (k->grid[i] >= k->nexprs)
            return bad(c, "the grid");
    if (k->group > k->nexprs)
        return bad(c, "the group");
    if (k->cluster > TL_MAX_CLUSTER || k->cluster_axis >= TILE_MAX_GRID)
        return bad(c, "the cluster");
    return check_indices(c, k, k->requires_off, k->nrequires) &&
           check_indices(c, k, k->assumes, k->nassumes);
}

/* A key is an integer or a bool. */
static bool check_tuning(check *c, const tile_image_kernel *k)
{
    if (k->nkeys > TILE_IMAGE_MAX_KEYS)
        return bad(c, "too many keys");
    if (!check_indices(c, k, k->keys, k->nkeys) ||
        !table(c, k->tuned, (uint64_t)k->ntuned * k->nkeys, sizeof(int32_t), 4, "the buckets"))
        return false;
    const uint32_t *keys = at(c, k->keys);
    const tile_image_expr *e = at(c, k->exprs);
    for (uint32_t i = 0; i < k->nkeys; i++)
        if (e[keys[i]].is_float)
            return bad(c, "a key");
    return true;
}

static bool check_consts_and_aliases(check *c, const tile_image_kernel *k)
{
    if (!table(c, k->consts, k->nconsts, sizeof(tile_image_const), 4, "the constants") ||
        !table(c, k->aliases, k->naliases, sizeof(tile_image_alias), 4, "the aliases"))
        return false;
    const tile_image_const *cs = at(c, k->consts);
    for (uint32_t i = 0; i < k->nconsts; i++)
        if (!text(c, cs[i].name) || !text(c, cs[i].value))
            return false;
    const tile_image_alias *a = at(c, k->aliases);
    for (uint32_t i = 0; i < k->naliases; i++)
        if (a[i].a >= k->nparams || a[i].b >= k->nparams)
            return bad(c, "an alias");
    return true;
}

static bool check_sites(check *c, const tile_image_kernel *k)
{
    if (!table(c, k->sites, k->nsites, sizeof(tile_image_site), 4, "the sites") ||
        !table(c, k->texts, k->ntexts, sizeof(uint32_t), 4, "the texts"))
        return false;
    const tile_image_header *h = at(c, 0);
    const tile_image_site *s = at(c, k->sites);
    for (uint32_t i = 0; i < k->nsites; i++)
        if (s[i].leaf >= TL_LEAF_COUNT || (h->nfiles > 0 && s[i].file >= h->nfiles))
            return bad(c, "a site");
    const uint32_t *texts = at(c, k->texts);
    for (uint32_t i = 0; i < k->ntexts; i++)
        if (!text(c, texts[i]))
            return false;
    return true;
}

static bool check_test(const check *c, const tile_image_kernel *k, const tile_image_test *t)
{
    const tile_image_param *p = at(c, k->params);
    if (t->kind == TILE_TEST_GRID || t->kind == TILE_TEST_CLUSTER)
        return true;
    if (t->kind >= TILE_TEST_COUNT || t->param >= k->nparams)
        return false;
    p += t->param;
    switch ((tile_test_kind)t->kind) {
    case TILE_TEST_POINTER: return p->kind != TILE_PARAM_SCALAR;
    case TILE_TEST_EXTENT:
    case TILE_TEST_STRIDE: return is_view_axis(c, k, t->param, t->axis);
    case TILE_TEST_SPAN: return p->kind == TILE_PARAM_VIEW;
    case TILE_TEST_SCALAR:
        return p->kind == TILE_PARAM_SCALAR && !tl_is_float_dtype((tile_dtype)p->dtype);
    case TILE_TEST_GRID:
    case TILE_TEST_CLUSTER:
    case TILE_TEST_COUNT: break;
    }
    return false;
}

/* `otherwise` is a later row, so there are no cycles. */
static bool check_tests(check *c, const tile_image_kernel *k)
{
    const tile_image_header *h = at(c, 0);
    if (k->ntests == 0 && k->otherwise)
        return bad(c, "another row without tests");
    if (!table(c, k->tests, k->ntests, sizeof(tile_image_test), 8, "the tests"))
        return false;
    const tile_image_test *t = at(c, k->tests);
    for (uint32_t i = 0; i < k->ntests; i++)
        if (!check_test(c, k, &t[i]))
            return bad(c, "a test");
    if (k->otherwise == 0)
        return true;
    const tile_image_kernel *rows = tl_image_kernels(c->data);
    uint32_t self = (uint32_t)(k - rows), other = k->otherwise - 1;
    if (other >= h->nkernels || other <= self || rows[other].nparams != k->nparams ||
        !(rows[other].flags & TILE_KERNEL_OTHERWISE))
        return bad(c, "the row that takes another's place");
    return true;
}

static bool check_kernel(check *c, const tile_image_kernel *k)
{
    if (!text(c, k->name) || !text(c, k->symbol) || (k->doc && !text(c, k->doc)))
        return false;
    if (!table(c, k->code, k->ncode, 1, 1, "the code"))
        return false;
    if (k->zeroed_bytes > k->scratch_bytes)
        return bad(c, "the scratch memory");
    return check_params(c, k) && check_syms(c, k) && check_slots(c, k) && check_exprs(c, k) &&
           check_clauses(c, k) && check_consts_and_aliases(c, k) && check_sites(c, k) &&
           check_tests(c, k) && check_tuning(c, k);
}

static uint64_t fnv1a(const unsigned char *p, uint64_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

static bool check_header(check *c)
{
    const tile_image_header *h = at(c, 0);
    if (c->size < sizeof *h || memcmp(h->magic, TILE_IMAGE_MAGIC, sizeof h->magic) != 0)
        return bad(c, "it does not begin as one");
    if (h->version != TILE_IMAGE_VERSION)
        return bad(c, "its version is not this runtime's");
    if (h->header_bytes < sizeof *h || h->header_bytes > c->size || h->total_bytes != c->size)
        return bad(c, "its size is not the one written in it");
    if (h->checksum !=
        fnv1a((const unsigned char *)c->data + h->header_bytes, c->size - h->header_bytes))
        return bad(c, "its checksum does not fit");
    return true;
}

static bool check_all(check *c)
{
    if (!check_header(c))
        return false;
    const tile_image_header *h = at(c, 0);
    if (!text(c, h->target) || (h->features && !text(c, h->features)) ||
        !table(c, h->files, h->nfiles, sizeof(uint32_t), 4, "the files") ||
        !table(c, h->kernels, h->nkernels, sizeof(tile_image_kernel), 8, "the kernels"))
        return false;
    const uint32_t *files = at(c, h->files);
    for (uint32_t i = 0; i < h->nfiles; i++)
        if (!text(c, files[i]))
            return false;
    for (uint32_t i = 0; i < h->nkernels; i++)
        if (!check_kernel(c, &tl_image_kernels(c->data)[i]))
            return false;
    return true;
}

const char *tl_image_path(const void *image, uint32_t file)
{
    const tile_image_header *h = image;
    const uint32_t *files = tl_image_at(image, h->files);
    return file < h->nfiles ? tl_image_text(image, files[file]) : NULL;
}

bool tl_image_extent(const void *data, size_t size, size_t *out_bytes)
{
    tile_image_header h;
    if (size < sizeof h || memcmp(data, TILE_IMAGE_MAGIC, sizeof h.magic) != 0)
        return false;
    memcpy(&h, data, sizeof h);
    if (h.total_bytes < sizeof h || h.total_bytes > size || h.total_bytes % 64 != 0)
        return false;
    *out_bytes = (size_t)h.total_bytes;
    return true;
}

tile_status tl_image_check(const void *data, size_t size)
{
    check c = {data, size, NULL};
    TL_INVARIANT(data && (uintptr_t)data % 8 == 0, "an image at %p", data);
    return check_all(&c) ? TILE_OK : tl_fail(TILE_BAD_IMAGE, "not a kernel image: %s", c.what);
}
