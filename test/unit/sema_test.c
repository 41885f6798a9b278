/* The front end's interface: what check and lower answer, and that every instance is valid IR. */
#include "frontend/frontend.h"
#include "frontend/ast.h"
#include "test/unit/unit.h"
#include <string.h>

static const char *const program =
    "auto twice(auto x) { return x + x; }\n"
    "kernel one(f32 x[N], const int B = 4, const fn f = twice, const type T = f32)\n"
    "    grid(cdiv(N, B)) instantiate(B = 4; B = 8; B = 16, f = identity)\n"
    "{ x[pid(0) * B +: B] = f(x[pid(0) * B +: B]); }\n"
    "kernel two(i32 x[N], const bool ON) grid(1) { static if (ON) x[0] = 1; else x[0] = 1.5; }\n";

static TlProgram *check(TlCtx *ctx, const char *text)
{
    TlFrontendOptions options = {.target_kind = "ref"};
    uint32_t source = tl_diags_source(&ctx->diags, "test.tile", text, strlen(text));
    return tl_frontend_check(ctx, source, &options);
}

/* Number of functions made, or -1 - status. */
static int lower(TlProgram *p, TlCtx *ctx, const char *kernel, const char *name, const char *value)
{
    TlConstArg arg = {name, value};
    const char *message;
    TlModule *m = tl_module_new(ctx);
    TlInstantiate r = tl_frontend_lower(p, kernel, &arg, name != NULL, NULL, m, &message);
    int made = r == TL_INST_OK ? (int)m->fns.len : -1 - (int)r;
    TlSbuf faults;
    tl_sbuf_init(&faults, &ctx->perm);
    if (r == TL_INST_OK)
        CHECK(tl_verify_module(m, &faults));
    if (r == TL_INST_BAD_CONST)
        CHECK(message && strstr(message, value));
    tl_module_free(m);
    return made;
}

static void instances(void)
{
    TlCtx ctx;
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlProgram *p = check(&ctx, program);
    CHECK(p && tl_program_kernels(p) == 2);
    CHECK(!strcmp(tl_program_kernel_name(p, 1), "two"));
    CHECK(!strcmp(tl_program_const_names(p, "one"), "B, f, T"));
    CHECK_INT(lower(p, &ctx, "one", NULL, NULL), 3);
    CHECK_INT(lower(p, &ctx, "one", "B", "8"), 1);
    CHECK_INT(lower(p, &ctx, "one", "f", "identity"), 3);
    CHECK_INT(lower(p, &ctx, "one", "f", "twice"), 2);
    CHECK_INT(lower(p, &ctx, "one", "B", "32"), -1 - TL_INST_NO_VARIANT);
    CHECK_INT(lower(p, &ctx, "one", "B", "4.5"), -1 - TL_INST_BAD_CONST);
    CHECK_INT(lower(p, &ctx, "one", "B", "99999999999"), -1 - TL_INST_BAD_CONST);
    CHECK_INT(lower(p, &ctx, "one", "T", "f33"), -1 - TL_INST_BAD_CONST);
    CHECK_INT(lower(p, &ctx, "one", "f", "nothing"), -1 - TL_INST_BAD_CONST);
    /* not its own: for whom it is, the caller asks */
    CHECK_INT(lower(p, &ctx, "one", "Q", "1"), 3);
    CHECK(!tl_program_has_const(p, NULL, "Q") && !tl_program_has_const(p, "one", "ON"));
    CHECK(tl_program_has_const(p, NULL, "ON") && tl_program_has_const(p, "one", "B"));
    CHECK(tl_program_has_const(p, NULL, "one.B") && !tl_program_has_const(p, NULL, "two.B"));
    CHECK_INT(lower(p, &ctx, "one", "one.B", "8"), 1);
    CHECK_INT(lower(p, &ctx, "one", "two.B", "8"), 3);
    CHECK_INT(lower(p, &ctx, "three", NULL, NULL), -1 - TL_INST_NO_KERNEL);
    CHECK_INT(lower(p, &ctx, "two", "ON", "true"), 1);
    CHECK_INT(lower(p, &ctx, "two", NULL, NULL), -1 - TL_INST_NO_VALUE);
    tl_ctx_free(&ctx);
}

/* An error in an instance only, found by the walk of that instance, once. */
static void errors(void)
{
    TlCtx ctx;
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlProgram *p =
        check(&ctx, "kernel k(i32 x[N], const int B) grid(1) { x[0 +: 8] = iota(B); }\n");
    CHECK(ctx.diags.errors == 0);
    CHECK_INT(lower(p, &ctx, "k", "B", "8"), 1);

    CHECK_INT(lower(p, &ctx, "k", "B", "4"), -1 - TL_INST_ERRORS);
    CHECK(ctx.diags.errors == 1);
    CHECK_INT(lower(p, &ctx, "k", "B", "4"), -1 - TL_INST_ERRORS);
    CHECK(ctx.diags.errors == 1);
    tl_ctx_free(&ctx);
}

int main(void)
{
    instances();
    errors();
    return unit_result();
}
