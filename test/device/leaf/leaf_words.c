/* leaf_words: what each row of runtime/contract/leaf.def does on a device, as words.
 *
 *     leaf_words DEVICE --write FILE | --check FILE [-k NAME] [--dump DIR] [--asm DIR]
 *                [--proven FILE] [-v]
 *
 * For each row (atomics: each operation) a small kernel is made from leaf calls alone, brought
 * through the target's expansion as the compiler's kernels are, put into an image and launched. Its
 * results are a function of the row only: every thread has cells of its own, and cells that all
 * threads update are updated by operations whose order does not matter. FILE has a line per row:
 * its name, a hash of all that was written, and some of the words; for rows that speak, the text.
 *
 * expect.py computes the same from the rows' meaning alone and is held against --dump. The words of
 * an emulated device say what the emulator does; written on a GPU they are the hardware's, and
 * --check on the emulator then proves it. --proven: with --check on a GPU, the lines of
 * codegen/target/proven.def for the rows that agreed. A row that fails is reported, the others
 * still run. --asm: assembly of the target itself, of each row. Exit: 0 all fine, 1 rows differ or
 * failed, 2 usage. */
#include "test/device/leaf/leaf_rows.h"
#include "test/unit/image_maker.h"
#include <time.h>

/* ---- running ---- */

typedef struct Run {
    tile_device *device;
    tile_device_info info;
    const TlTarget *target;
    bool emulate, verbose;
    const char *only, *dump, *assembly, *proven;
    tile_buffer *in, *out;
    char spoken[1024];
    unsigned char words[OUT_BYTES];
    ImageMaker image;
} Run;

static void on_text(void *user, const char *text)
{
    Run *r = user;
    snprintf(r->spoken + strlen(r->spoken), sizeof r->spoken - strlen(r->spoken), " | %s", text);
}

static bool fails(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tile_last_error());
    return false;
}

/* Results are poisoned, cells hold what in_cell says. */
static void fill_output(Run *r, char letter)
{
    memset(r->words, 0xab, CELLS_AT);
    for (uint32_t c = 0; c < (ALL_THREADS + 1) * CELLS; c++) {
        unsigned char *cell = r->words + CELLS_AT + c * 8;
        double d = c % 100;
        float f = (float)d;
        uint16_t h = (uint16_t)(c * 257);
        memset(cell, 0xcd, 8);
        memcpy(cell,
               letter == 'c' || letter == 'h' ? (void *)&h
               : letter == 'i' ? (void *)&f
                               : (void *)&d,
               letter == 'c'   ? 1
               : letter == 'h' ? 2
               : letter == 'i' ? 4
                               : 8);
    }
}

static tile_arg view_of(const Run *r, const LeafBox *box, tl_leaf leaf)
{
    const uint16_t *memory = tile_buffer_ptr(leaf_stores_box(leaf) ? r->out : r->in);
    return box ? tile_view_strided(memory, (int)leaf_box_rank(leaf), box->extent, box->stride)
               : (tile_arg){0};
}

static tile_status launch(Run *r, const LeafCode *code, tl_leaf leaf)
{
    tile_module *m = NULL;
    tile_kernel *k = NULL;
    const LeafBox *box = leaf_box(leaf);
    uint32_t rank = leaf_box_rank(leaf);
    const tile_image_slot map = {TILE_SLOT_MAP, 2,
                                 box ? (rank - 1) | box->other << 4 | box->span << 8 : 0,
                                 box ? box->span / 2 | box->rows << 16 : 0};
    KernelSpec spec[2] = {{.name = code->symbol,
                           .params = {{"in", "u8 const pointer"},
                                      {"out", "u8 pointer"},
                                      {box ? "v" : NULL, box ? box->view : NULL}},
                           .grid = {"2"},
                           .code = code->data,
                           .ncode = code->size,
                           .warps = THREADS / (uint32_t)r->target->lanes,
                           .threads = THREADS,
                           .shared_bytes = leaf_shared_bytes(leaf),
                           .maps = &map,
                           .nmaps = box ? 1 : 0,
                           .gpu = tl_leaf_class_of(leaf) == TL_LEAF_CLASS_DEBUG,
                           .texts = {"words", "3,2", "it is so", "load"},
                           .tests = {{TILE_TEST_POINTER, 0, 0, 0, box ? 1 : 0}}}};
    spec[1] = spec[0]; /* for views that no map is made of; never launched */
    spec[1].nmaps = 0;
    spec[1].flags = TILE_KERNEL_OTHERWISE;
    spec[1].tests[0].mask = 0;
    make_image(&r->image, r->info.target, spec, box ? 2 : 1);
    tile_status s = tile_module_load_image(r->device, r->image.data, r->image.size, &m);
    if (!s)
        s = tile_kernel_get(m, code->symbol, NULL, &k);
    if (!s)
        s = tile_buffer_upload(r->out, 0, r->words, OUT_BYTES, NULL);
    if (!s)
        s = tile_launch(k, NULL,
                        (tile_arg[]){tile_ptr_sized(tile_buffer_ptr(r->in), INPUT_BYTES),
                                     tile_ptr_sized(tile_buffer_ptr(r->out), OUT_BYTES),
                                     view_of(r, box, leaf)},
                        box ? 3 : 2);
    if (!s)
        s = tile_device_synchronize(r->device);
    if (!s || s == TILE_FAILED)
        s = tile_buffer_download(r->out, 0, r->words, OUT_BYTES, NULL);
    tile_module_free(m);
    return s;
}

static uint64_t hash_of(const Run *r)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof r->words; i++)
        h = (h ^ r->words[i]) * UINT64_C(0x100000001b3);
    for (const char *p = r->spoken; *p; p++)
        h = (h ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    return h;
}

/* "name hash word... text": the words are the first of thread 5 of the last block. */
static void describe(const Run *r, const char *name, char *line, size_t size)
{
    size_t n = (size_t)snprintf(line, size, "%s %016" PRIx64, name, hash_of(r));
    size_t at = ((size_t)(BLOCKS - 1) * THREADS + 5) * RESULTS * 16;
    for (int i = 0; i < SAMPLES; i++) {
        uint32_t w;
        memcpy(&w, r->words + at + (size_t)i * 16, sizeof w);
        n += (size_t)snprintf(line + n, size - n, " %08x", w);
    }
    snprintf(line + n, size - n, "%s", r->spoken);
}

static void write_file(const char *folder, const char *name, const char *end, const void *data,
                       size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, end);
    FILE *f = fopen(path, "wb");
    if (f)
        fwrite(data, 1, size, f);
    if (f)
        fclose(f);
}

static void write_assembly(const Run *r, TlArena *arena, tl_leaf leaf, uint32_t op,
                           const char *name)
{
    LeafCode asm_ = leaf_make_code(arena, r->target, false, TL_EMIT_ASM, leaf, op, name);
    write_file(r->assembly, name, "s", asm_.data, asm_.size);
}

static bool try_code(Run *r, TlArena *arena, tl_leaf leaf, uint32_t op, const char *name,
                     LeafCode *out)
{
    TlGuard g;
    if (TL_GUARD(&g)) {
        *out = leaf_make_code(arena, r->target, r->emulate, TL_EMIT_OBJ, leaf, op, name);
        if (r->assembly)
            write_assembly(r, arena, leaf, op, name);
        tl_guard_pop(&g);
    } else {
        fprintf(stderr, "%s: %s\n", name, g.text);
        return false;
    }
    if (out->size + 4096 > MAKER_BYTES)
        fprintf(stderr, "%s: code of %zu bytes\n", name, out->size);
    return out->size + 4096 <= MAKER_BYTES;
}

/* A row's line; false when it could not be made or run, which has been said. */
static bool run_row(Run *r, tl_leaf leaf, uint32_t op, const char *name, char *line, size_t size)
{
    TlArena arena;
    LeafCode code;
    tl_arena_init(&arena, (TlAlloc){0});
    r->spoken[0] = 0;
    fill_output(r, leaf_atom_letter(leaf));
    bool ran = try_code(r, &arena, leaf, op, name, &code);
    if (ran && launch(r, &code, leaf) != TILE_OK)
        ran = fails(name);
    if (ran)
        describe(r, name, line, size);
    if (ran && r->dump)
        write_file(r->dump, name, "bin", r->words, sizeof r->words);
    tl_arena_free(&arena);
    return ran;
}

/* ---- files ---- */

/* The line of `name` in a file of lines; NULL: none. */
static const char *find_line(const char *text, const char *name, size_t *length)
{
    size_t n = strlen(name);
    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, name, n) == 0 && at[n] == ' ') {
            *length = strcspn(at, "\n");
            return at;
        }
    return NULL;
}

static bool same(const char *want, size_t length, const char *line, const char *name)
{
    if (want && strlen(line) == length && memcmp(want, line, length) == 0)
        return true;
    printf("%s\n  got  %s\n  want %.*s\n", name, line, want ? (int)length : 6,
           want ? want : "(none)");
    return false;
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!f || !text || !fread(text, 1, (1 << 20) - 1, f)) {
        fprintf(stderr, "cannot read %s\n", path);
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

static void write_head(FILE *f, const Run *r)
{
    char day[16] = "";
    time_t now = time(NULL);
    struct tm t;
    if (gmtime_r(&now, &t))
        strftime(day, sizeof day, "%Y-%m-%d", &t);
    fprintf(
        f,
        "# Words of the leaf rows (leaf_words.c): name, hash of all, some words, what was said.\n"
        "# %s: %s, target %s, %s\n",
        r->emulate ? "Not hardware" : "Hardware", r->info.name, r->info.target, day);
}

typedef struct Count {
    int rows, bad;
} Count;

static void one_row(Run *r, tl_leaf leaf, uint32_t op, const char *name, const char *want,
                    FILE *out, Count *count)
{
    char line[2048];
    if (r->only && !strstr(name, r->only))
        return;
    count->rows++;
    bool ran = run_row(r, leaf, op, name, line, sizeof line);
    if (ran && out)
        fprintf(out, "%s\n", line);
    size_t length = 0;
    const char *at = want ? find_line(want, name, &length) : NULL;
    bool fine = ran && (!want || same(at, length, line, name));
    count->bad += !fine;
    if (r->verbose)
        printf("%s %s\n", fine ? "ok  " : "FAIL", name);
    fflush(stdout);
}

/* A line of proven.def; on an emulated device nothing is proven. */
static void add_proof(const Run *r, FILE *f, tl_leaf leaf)
{
    static const char *const IDS[] = {
#define LEAF(ID, ...) #ID,
#include "runtime/contract/leaf.def"
    };
    if (f && !r->emulate)
        fprintf(f, "PROVEN(\"%s\", %s)\n", r->target->name, IDS[leaf]);
}

static Count all_rows(Run *r, const char *want, FILE *out, FILE *proven)
{
    Count count = {0, 0};
    TlArena arena;
    tl_arena_init(&arena, (TlAlloc){0});
    for (int leaf = 0; leaf < TL_LEAF_COUNT; leaf++) {
        Count before = count;
        for (uint32_t op = 0; op < leaf_operations((tl_leaf)leaf); op++) {
            char name[64];
            if (!leaf_has_operation(r->target, &arena, (tl_leaf)leaf, op))
                continue;
            leaf_name_row((tl_leaf)leaf, op, name, sizeof name);
            one_row(r, (tl_leaf)leaf, op, name, want, out, &count);
        }
        if (want && count.rows > before.rows && count.bad == before.bad)
            add_proof(r, proven, (tl_leaf)leaf);
    }
    tl_arena_free(&arena);
    return count;
}

static bool open_device(Run *r, const char *name)
{
    static unsigned char input[INPUT_BYTES];
    tile_callbacks callbacks = TILE_CALLBACKS_INIT;
    callbacks.print = callbacks.failure = on_text;
    callbacks.user = r;
    for (uint32_t i = 0; i < INPUT_BYTES; i++)
        input[i] = (unsigned char)((i * 2654435761u) >> 24);
    r->info = (tile_device_info)TILE_DEVICE_INFO_INIT;
    if (tile_device_open(name, &r->device) || tile_set_default_device(r->device) ||
        tile_device_get_info(r->device, &r->info) ||
        tile_device_set_callbacks(r->device, &callbacks) ||
        tile_buffer_alloc(r->device, INPUT_BYTES, &r->in) ||
        tile_buffer_alloc(r->device, OUT_BYTES, &r->out) ||
        tile_buffer_upload(r->in, 0, input, INPUT_BYTES, NULL))
        return fails(name);
    r->target = tl_target_find(r->info.target, &r->emulate);
    if (!r->target || !tl_target_is_gpu(r->target)) {
        fprintf(stderr, "%s is no GPU, nor emulates one\n", name);
        return false;
    }
    return true;
}

static int usage(void)
{
    fprintf(stderr, "leaf_words DEVICE --write FILE | --check FILE [-k NAME] [--dump DIR] "
                    "[--asm DIR] [--proven FILE] [-v]\n");
    return 2;
}

static int run(Run *r, const char *device, const char *write, const char *check)
{
    char *want = check ? read_text(check) : NULL;
    if (check && !want)
        return 2;
    FILE *out = NULL, *proven = NULL;
    Count count = {0, 1};
    if (open_device(r, device)) {
        out = write ? fopen(write, "w") : NULL;
        if (out)
            write_head(out, r);
        proven = r->proven ? fopen(r->proven, "w") : NULL;
        count = all_rows(r, want, out, proven);
        printf("%s: %d rows, %d bad\n", r->info.name, count.rows, count.bad);
    }
    bool written = !write || (out && fclose(out) == 0);
    written &= !r->proven || (proven && fclose(proven) == 0);
    tile_buffer_free(r->in);
    tile_buffer_free(r->out);
    tile_set_default_device(NULL);
    tile_device_close(r->device);
    free(want);
    return count.bad || !count.rows || !written;
}

int main(int argc, char **argv)
{
    const char *write = NULL, *check = NULL;
    Run *r = calloc(1, sizeof *r);
    if (!r || argc < 2)
        return usage();
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            r->verbose = true;
        else if (i + 1 == argc)
            return usage();
        else if (strcmp(argv[i], "--write") == 0)
            write = argv[++i];
        else if (strcmp(argv[i], "--check") == 0)
            check = argv[++i];
        else if (strcmp(argv[i], "--dump") == 0)
            r->dump = argv[++i];
        else if (strcmp(argv[i], "--asm") == 0)
            r->assembly = argv[++i];
        else if (strcmp(argv[i], "--proven") == 0)
            r->proven = argv[++i];
        else if (strcmp(argv[i], "-k") == 0)
            r->only = argv[++i];
        else
            return usage();
    }
    if (!write && !check)
        return usage();
    int status = run(r, argv[1], write, check);
    free(r);
    return status;
}
