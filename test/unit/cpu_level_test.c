/* CPU levels: what a machine has, what a level wants, how an image is refused where something
 * lacks; objects with undefined names. */
#include "codegen/compile.h"
#include "codegen/target/host_code.h"
#include "runtime/contract/cpu_state.h"
#include "runtime/cpu_level.h"
#include "runtime/runtime.h"
#include "test/unit/image_maker.h"
#include "test/unit/unit.h"

static bool says(const char *text)
{
    return strstr(tile_last_error(), text) != NULL;
}

/* A level's features, from a machine that has all. */
static uint64_t features_of(const char *level)
{
    uint64_t set = 0;
    CHECK_INT(tl_cpu_open("d", level, UINT64_MAX, &set), TILE_OK);
    return set;
}

/* The set of the names in a list. */
static uint64_t set_of(const char *names)
{
    uint64_t set = 0;
    char text[100];
    for (int i = 0; i < 64; i++)
        if (tl_cpu_lacks(names, UINT64_C(1) << i, text, sizeof text) < tl_cpu_count(names))
            set |= UINT64_C(1) << i;
    return set;
}

static const char APX[] = "egpr ndd ccmp nf push2pop2 ppx zu";

static void levels_hold_each_other(void)
{
    uint64_t v2 = features_of("x86-64-v2"), v3 = features_of("x86-64-v3"),
             v4 = features_of("x86-64-v4"), arm = features_of("aarch64"),
             dots = features_of("armv8.4-a"), blocks = features_of("armv8.6-a"),
             sve2 = features_of("armv9-a");
    CHECK((arm & dots) == arm && (dots & blocks) == dots);
    CHECK((sve2 & blocks) == blocks && (sve2 & ~blocks) == set_of("sve sve2"));
    CHECK((dots & set_of("dotprod i8mm")) == set_of("dotprod"));
    CHECK((blocks & ~dots) == set_of("i8mm bf16"));
    CHECK((v2 & v3) == v2 && v2 != v3);
    CHECK((v3 & v4) == v3 && v3 != v4);
    uint64_t vnni = features_of("x86-64-v4-vnni"), zen4 = features_of("x86-64-v4-zen4"),
             avx10 = features_of("x86-64-v4-avx10"), amx = features_of("x86-64-v4-amx");
    CHECK((v4 & vnni) == v4 && (vnni & amx) == vnni && (vnni & zen4) == vnni);
    CHECK((zen4 & ~vnni) == set_of("avx512bf16 sse4a"));
    CHECK((vnni & avx10) == vnni);
    CHECK((avx10 & ~vnni) == set_of("avx512bf16 avx512fp16 avx10.1-512"));
    CHECK((amx & ~vnni) == set_of("avx512bf16 amx-tile amx-int8 amx-bf16"));
    CHECK((features_of("x86-64-v4-apx") & ~avx10) == set_of(APX));
    CHECK((v4 & arm) == 0);
    CHECK((v2 & set_of("x86-64 sse4.1 ssse3")) == set_of("x86-64 sse4.1 ssse3"));
    CHECK((v2 & set_of("avx fma f16c")) == 0);
    CHECK((v3 & set_of("avx2 fma f16c")) == set_of("avx2 fma f16c"));
}

static void machines_have_levels(void)
{
    uint64_t v2 = features_of("x86-64-v2"), v4 = features_of("x86-64-v4"),
             arm = features_of("aarch64"), set;
    CHECK_INT(tl_cpu_open("cpu:x86-64-v3", "x86-64-v3", v4, &set), TILE_OK);
    CHECK(set == features_of("x86-64-v3"));
    CHECK_INT(tl_cpu_open("cpu", "", v2, &set), TILE_OK);
    CHECK(set == v2);
    CHECK_INT(tl_cpu_open("cpu:native", "native", arm, &set), TILE_OK);
    CHECK(set == arm);
    CHECK_INT(tl_cpu_open("cpu:x86-64-v3", "x86-64-v3", v2, &set), TILE_UNAVAILABLE);
    CHECK(says("device 'cpu:x86-64-v3' is not available: this CPU is below x86-64-v3: it lacks "
               "fma, movbe, xsave, avx, f16c"));
    CHECK_INT(tl_cpu_open("cpu", "", v2 & ~set_of("sse4.1"), &set), TILE_UNAVAILABLE);
    CHECK(says("below x86-64-v2: it lacks sse4.1"));
    CHECK_INT(tl_cpu_open("cpu:aarch64", "aarch64", v2, &set), TILE_UNAVAILABLE);
    CHECK(says("this machine is x86-64, not aarch64"));
    CHECK_INT(tl_cpu_open("cpu:armv9-a", "armv9-a", features_of("armv8.6-a"), &set),
              TILE_UNAVAILABLE);
    CHECK(says("this CPU is below armv9-a: it lacks sve, sve2"));
    CHECK_INT(tl_cpu_open("cpu:x86-64-v5", "x86-64-v5", v4, &set), TILE_BAD_ARGUMENT);
    CHECK(says(
        "unknown CPU level 'x86-64-v5'; expected one of native, x86-64-v2, x86-64-v3, x86-64-v4, "
        "x86-64-v4-vnni, x86-64-v4-zen4, x86-64-v4-avx10, x86-64-v4-apx, x86-64-v4-amx, aarch64, "
        "armv8.4-a, armv8.6-a, armv9-a"));
}

static void lacking_names_are_listed(void)
{
    char text[64], little[8];
    uint64_t v2 = features_of("x86-64-v2");
    CHECK_INT(tl_cpu_lacks("x86-64 sse3", v2, text, sizeof text), 0);
    CHECK_STR(text, "");
    CHECK_INT(tl_cpu_lacks("x86-64 avx sse3 nonsense", v2, text, sizeof text), 2);
    CHECK_STR(text, "avx, nonsense");
    CHECK_INT(tl_cpu_lacks("avx nonsense", v2, little, sizeof little), 2);
    CHECK_STR(little, "avx, no");
    CHECK_INT(tl_cpu_count("x86-64 sse3 avx"), 3);
    CHECK_INT(tl_cpu_count(""), 0);
}

/* LLVM and the runtime ask the CPU each in its own way. */
static void compiler_and_runtime_see_one_machine(void)
{
    TlArena arena;
    TlGuard g;
    char text[400];
    tl_arena_init(&arena, (TlAlloc){tl_libc_alloc, NULL});
    if (CHECK(TL_GUARD(&g))) {
        const char *native = tl_host_features(&arena, tl_target_find("cpu", NULL));
        CHECK_INT(tl_cpu_lacks(native, tl_cpu_machine(), text, sizeof text), 0);
        CHECK_STR(text, "");
        CHECK(set_of(native) == tl_cpu_machine());
        CHECK(set_of(tl_host_features(&arena, tl_target_find("cpu:x86-64-v4", NULL))) ==
              features_of("x86-64-v4"));
        CHECK(set_of(tl_host_features(&arena, tl_target_find("cpu:aarch64", NULL))) ==
              features_of("aarch64"));
        tl_guard_pop(&g);
    }
    tl_arena_free(&arena);
}

#if defined(__x86_64__)
/* A CPU that has every feature, but for some bits of cpuid(7, 1).edx, and a system that saves such
 * registers. */
static struct {
    bool is;
    uint32_t lacks;
    uint64_t saved;
} other_cpu;

bool __real_tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4]);
bool __wrap_tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4]);
uint64_t __real_tl_cpu_saved_state(void);
uint64_t __wrap_tl_cpu_saved_state(void);

bool __wrap_tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
    if (!other_cpu.is)
        return __real_tl_cpu_ask(leaf, sub, out);
    memset(out, 0xff, 4 * sizeof *out);
    if (leaf == 7 && sub == 1)
        out[3] &= ~other_cpu.lacks;
    return true;
}

uint64_t __wrap_tl_cpu_saved_state(void)
{
    return other_cpu.is ? other_cpu.saved : __real_tl_cpu_saved_state();
}

/* AVX10 is what the CPU says, by bit 19, and what the system keeps: the masks and all of the 512
 * bits of the registers. */
static void avx10_wants_its_bit_and_its_registers(void)
{
    static const char LEVEL[] = "x86-64-v4-avx10";
    enum { AVX = 7, ALL = 0xe7, UPPER_HALVES = 0x40, AVX10 = 1 << 19 };
    uint64_t set;
    other_cpu.is = true;
    other_cpu.saved = ALL;
    CHECK_INT(tl_cpu_open("d", LEVEL, tl_cpu_machine(), &set), TILE_OK);
    CHECK(set == features_of(LEVEL));
    other_cpu.lacks = AVX10;
    CHECK_INT(tl_cpu_open("d", LEVEL, tl_cpu_machine(), &set), TILE_UNAVAILABLE);
    CHECK(says("this CPU is below x86-64-v4-avx10: it lacks avx10.1-512"));
    other_cpu.lacks = 0;
    other_cpu.saved = ALL & ~UPPER_HALVES;
    CHECK_INT(tl_cpu_open("d", LEVEL, tl_cpu_machine(), &set), TILE_UNAVAILABLE);
    CHECK(says("it lacks avx512f, evex512, avx512dq") && says("avx512bf16, avx10.1-512"));
    other_cpu.saved = AVX;
    CHECK_INT(tl_cpu_open("d", "x86-64-v3", tl_cpu_machine(), &set), TILE_OK);
    CHECK(!(tl_cpu_machine() & set_of("avx10.1-512 avx512fp16 amx-tile")));
    other_cpu.is = false;
}

/* APX likewise: bit 21, and registers 16 to 31, which older systems do not keep. */
static void apx_wants_its_bit_and_its_registers(void)
{
    static const char LEVEL[] = "x86-64-v4-apx";
    enum { ALL = 0x800e7, REGISTERS = 0x80000, APX_F = 1 << 21 };
    uint64_t set;
    other_cpu.is = true;
    other_cpu.saved = ALL;
    CHECK_INT(tl_cpu_open("d", LEVEL, tl_cpu_machine(), &set), TILE_OK);
    CHECK(set == features_of(LEVEL));
    other_cpu.lacks = APX_F;
    CHECK_INT(tl_cpu_open("d", LEVEL, tl_cpu_machine(), &set), TILE_UNAVAILABLE);
    CHECK(says("below x86-64-v4-apx: it lacks egpr, ndd, ccmp, nf, push2pop2, ppx, zu"));
    other_cpu.lacks = 0;
    other_cpu.saved = ALL & ~REGISTERS;
    CHECK_INT(tl_cpu_open("d", LEVEL, tl_cpu_machine(), &set), TILE_UNAVAILABLE);
    CHECK(says("it lacks egpr"));
    CHECK_INT(tl_cpu_open("d", "x86-64-v4-avx10", tl_cpu_machine(), &set), TILE_OK);
    CHECK(!(tl_cpu_machine() & set_of(APX)));
    other_cpu.is = false;
}
#endif

/* A process that may not use the data of tiles has no feature that wants them; asking twice is as
 * good as once. */
static void tiles_want_permission(void)
{
    uint64_t amx = set_of("amx-tile amx-int8 amx-bf16"), avx = 7;
    CHECK(amx != 0 && tl_cpu_permitted(avx) == avx);
    uint64_t state = tl_cpu_permitted(avx | TL_CPU_ASKED_STATE);
    CHECK((state & ~TL_CPU_ASKED_STATE) == avx && tl_cpu_permitted(state) == state);
    CHECK(state & TL_CPU_ASKED_STATE || !(tl_cpu_machine() & amx));
}

/* ---- images ---- */

static const char KERNEL[] = "kernel k(f32 x[N]) { x[0 +: 32] = fma(x[0 +: 32], 2, 1); }";

static tilec_output *compile(const char *target)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *out;
    o.target = target;
    CHECK_INT(tilec_compile_source("k.tile", KERNEL, sizeof KERNEL - 1, &o, &out), TILEC_OK);
    return out;
}

/* Loads an image; `target`, of 32 bytes, gets what the one that was chosen was made for. */
static tile_status load(const char *device, const void *image, size_t size, char *target)
{
    tile_device *d;
    tile_module *m = NULL;
    tile_kernel *k;
    *target = 0;
    if (!CHECK_INT(tile_device_open(device, &d), TILE_OK))
        return TILE_UNAVAILABLE;
    tile_status status = tile_module_load_image(d, image, size, &m);
    if (status == TILE_OK) {
        const tile_image_header *h = m->images->data;
        snprintf(target, 32, "%s", tl_image_text(h, h->target));
        CHECK_INT(tile_kernel_get(m, "k", NULL, &k), TILE_OK);
        CHECK_INT(tile_kernel_prepare(k), TILE_OK);
    }
    tile_module_free(m);
    tile_device_close(d);
    return status;
}

static tile_status load_for(const char *device, const char *targets, char *chosen)
{
    tilec_output *out = compile(targets);
    size_t size;
    const void *image = tilec_output_data(out, &size);
    tile_status status = load(device, image, size, chosen);
    tilec_output_free(out);
    return status;
}

#if defined(__x86_64__)
static void images_say_what_they_want(void)
{
    char chosen[32];
    CHECK_INT(load_for("cpu", "cpu", chosen), TILE_OK);
    CHECK_INT(load_for("cpu", "cpu:native", chosen), TILE_OK);
    CHECK_INT(load_for("cpu:native", "cpu", chosen), TILE_OK);
    CHECK_INT(load_for("cpu", "cpu:x86-64-v2", chosen), TILE_OK);
    CHECK_INT(load_for("cpu:x86-64-v2", "cpu:x86-64-v2", chosen), TILE_OK);
    CHECK_INT(load_for("emu:sm_80@x86-64-v2", "emu:sm_80@x86-64-v2", chosen), TILE_OK);
    CHECK_INT(load_for("cpu:x86-64-v2", "cpu:x86-64-v3", chosen), TILE_BAD_IMAGE);
    CHECK(says("made for target 'cpu:x86-64-v3' and uses features that the CPU of device "
               "'cpu:x86-64-v2' "
               "lacks: fma, movbe, xsave, avx"));
    CHECK_INT(load_for("cpu", "cpu:aarch64", chosen), TILE_BAD_IMAGE);
    CHECK(says("lacks: aarch64, fp-armv8, neon"));
    CHECK_INT(load_for("cpu", "ref", chosen), TILE_BAD_IMAGE);
}

static void the_best_of_several_is_taken(void)
{
    static const char ALL[] = "cpu:x86-64-v4,cpu:x86-64-v2,cpu:aarch64,cpu:x86-64-v3,sm_80";
    uint64_t machine = tl_cpu_machine();
    char chosen[32], best[32];
    CHECK_INT(load_for("cpu:x86-64-v2", ALL, chosen), TILE_OK);
    CHECK_STR(chosen, "cpu:x86-64-v2");
    strcpy(best, "cpu:x86-64-v2");
    for (int v = 3; v <= 4; v++) {
        char device[32];
        snprintf(device, sizeof device, "cpu:x86-64-v%d", v);
        if (features_of(device + 4) & ~machine)
            continue;
        strcpy(best, device);
        CHECK_INT(load_for(device, ALL, chosen), TILE_OK);
        CHECK_STR(chosen, device);
    }
    CHECK_INT(load_for("cpu", ALL, chosen), TILE_OK);
    CHECK_STR(chosen, best);
    CHECK_INT(load_for("cpu:x86-64-v2", "sm_80,cpu:aarch64", chosen), TILE_BAD_IMAGE);
    CHECK(says("lacks: aarch64"));
}
#endif

static void unknown_features_are_refused(void)
{
    static ImageMaker m;
    KernelSpec spec = {.name = "k", .grid = {"1"}, .code = "code", .ncode = 4};
    char chosen[32];
    make_image(&m, "cpu", &spec, 1);
    tile_image_header *h = (tile_image_header *)(void *)m.data;
    h->features = maker_text(&m, "nonsense");
    h->total_bytes = m.size;
    maker_checksum(&m);
    CHECK_INT(load("cpu", m.data, m.size, chosen), TILE_BAD_IMAGE);
    CHECK(says("lacks: nonsense"));
    h->features = m.size;
    maker_checksum(&m);
    CHECK_INT(load("cpu", m.data, m.size, chosen), TILE_BAD_IMAGE);
    CHECK(says("a text lies outside"));
}

/* ---- undefined names ---- */

/* What tl_host_check_closed says of a module's object; "" nothing. */
static void check_object(const char *text, const char *known, char *said, size_t size)
{
    TlArena arena;
    TlGuard g;
    TlLlvm l = {0};
    *said = 0;
    tl_arena_init(&arena, (TlAlloc){tl_libc_alloc, NULL});
    if (TL_GUARD(&g)) {
        size_t bytes;
        tl_llvm_open(&l, &arena, "test", "", "", "", 0);
        tl_llvm_link_text(&l, text, strlen(text));
        void *object = tl_llvm_emit(&l, &arena, true, &bytes);
        tl_host_check_closed(object, bytes, known);
        tl_guard_pop(&g);
    } else {
        snprintf(said, size, "%s", g.text);
        CHECK_INT(g.fault, TL_FAULT_INTERNAL);
    }
    tl_llvm_close(&l);
    tl_arena_free(&arena);
}

static void undefined_names_are_found(void)
{
    char said[512];
    check_object("define void @tl.f() {\n  ret void\n}\n", NULL, said, sizeof said);
    CHECK_STR(said, "");
    static const char TWO[] =
        "declare void @first()\ndeclare void @tl_emu_second()\n"
        "define void @tl.f() {\n  call void @first()\n  call void @tl_emu_second()\n"
        "  ret void\n}\n";
    check_object(TWO, NULL, said, sizeof said);
    CHECK_STR(said, "undefined in the kernels' object: first, tl_emu_second");
    check_object(TWO, "tl_emu_", said, sizeof said);
    CHECK_STR(said, "undefined in the kernels' object: first");
}

int main(void)
{
    levels_hold_each_other();
    machines_have_levels();
    lacking_names_are_listed();
    compiler_and_runtime_see_one_machine();
    tiles_want_permission();
#if defined(__x86_64__)
    avx10_wants_its_bit_and_its_registers();
    apx_wants_its_bit_and_its_registers();
    images_say_what_they_want();
    the_best_of_several_is_taken();
#endif
    unknown_features_are_refused();
    undefined_names_are_found();
    return unit_result();
}
