/* Modules: a source's items by name, and the modules that it imports. Each module is read once, no
 * matter how many others import it. */
#include "frontend/sema.h"
#include "frontend/stdlib.h"
#include <string.h>

TlDef *tl_mod_find(const TlMod *m, TlName name)
{
    return tl_map_get_ptr(&m->names, name);
}

/* ---- paths ---- */

/* dir/name, without . and inner .. parts */
static const char *join_path(TlArena *arena, const char *dir, size_t dir_len, const char *name)
{
    const char *raw =
        name[0] == '/' || !dir_len ? name : tl_format(arena, "%.*s/%s", (int)dir_len, dir, name);
    TL_VEC(const char *) parts = {0};
    bool absolute = raw[0] == '/';
    while (*raw) {
        size_t n = strcspn(raw, "/");
        const char *part = tl_strndup(arena, raw, n);
        raw += n + (raw[n] == '/');
        if (!n || !strcmp(part, "."))
            continue;
        if (!strcmp(part, "..") && parts.len && strcmp(parts.data[parts.len - 1], ".."))
            parts.len--;
        else
            tl_vec_push(arena, &parts, part);
    }
    TlSbuf out;
    tl_sbuf_init(&out, arena);
    tl_sbuf_puts(&out, absolute ? "/" : "");
    for (uint32_t i = 0; i < parts.len; i++)
        tl_sbuf_putf(&out, "%s%s", i ? "/" : "", parts.data[i]);
    return out.text ? out.text : "";
}

static const char *read_file(TlProgram *p, const char *path, size_t *size, const char **error)
{
    if (!p->options.read)
        return NULL;
    return p->options.read(p->options.read_user, &p->ctx->perm, path, size, error);
}

static TlMod *find_module(const TlProgram *p, const char *path)
{
    return tl_map_get_ptr(&p->by_path, tl_intern_str(&p->ctx->strings, path));
}

/* The text of an imported file, which is looked for beside the importing one, then in the include
 * directories. */
static const char *find_file(TlProgram *p, const TlMod *from, const TlItem *import,
                             const char **out_path, size_t *size)
{
    TlArena *arena = &p->ctx->perm;
    const char *slash = strrchr(from->path, '/'), *error = NULL;
    size_t dir_len = slash ? (size_t)(slash - from->path) + (slash == from->path) : 0;
    for (uint32_t i = 0; i <= p->options.ninclude_dirs; i++) {
        const char *dir = i ? p->options.include_dirs[i - 1] : from->path;
        const char *path = join_path(arena, dir, i ? strlen(dir) : dir_len, import->path);
        TlMod *known = find_module(p, path);
        *out_path = path;
        if (known)
            return known->path;
        const char *text = read_file(p, path, size, &error);
        if (text)
            return text;
        if (error) {
            tl_diag(&p->ctx->diags, import->loc, TL_E0001, path, error);
            *out_path = NULL;
            return NULL;
        }
        if (import->path[0] == '/')
            break;
    }
    tl_diag(&p->ctx->diags, import->loc, TL_E0204, import->path);
    *out_path = NULL;
    return NULL;
}

static TlMod *import_module(TlProgram *p, const TlMod *from, const TlItem *import)
{
    TL_ASSERT(import->kind == TL_IT_IMPORT, "item kind %d is no import", (int)import->kind);
    const char *path = import->path, *text;
    size_t size = 0;
    if (import->is_file) {
        text = find_file(p, from, import, &path, &size);
    } else {
        text = tl_stdlib_find(path, &size);
        if (!text)
            tl_diag(&p->ctx->diags, import->loc, TL_E0204, path);
    }
    if (!text || !path)
        return NULL;
    TlMod *known = find_module(p, path);
    if (known && known->state == TL_BUSY) {
        tl_diag(&p->ctx->diags, import->loc, TL_E0205, path);
        return NULL;
    }
    if (known)
        return known;
    uint32_t source = tl_diags_source(&p->ctx->diags, path, text, size);
    return tl_module_open(p, source, path);
}

/* ---- items ---- */

static void twice(TlProgram *p, const TlItem *item, const TlItem *before)
{
    TlDiag *row = tl_diag(&p->ctx->diags, item->loc, TL_E0206, item->name);
    if (row)
        tl_diag_note(&p->ctx->diags, row, before->loc, "defined here before");
}

/* Two imports under one name may be the same module: `check_imports` can tell once both are
 * read. */
static void bind_item(TlProgram *p, TlMod *m, TlItem *item)
{
    TL_ASSERT(item->kind != TL_IT_ASSERT || !item->name, "an assertion with a name");
    TlArena *arena = &p->ctx->perm;
    TlDef *def = TL_NEW(arena, TlDef);
    def->item = item;
    def->mod = m;
    tl_vec_push(arena, &m->defs, def);
    if (!item->name || item->kind == TL_IT_ASSERT)
        return;
    TlDef *before = tl_mod_find(m, item->name);
    if (!before)
        tl_map_put_ptr(&m->names, item->name, def);
    else if (before->item->kind != TL_IT_IMPORT || item->kind != TL_IT_IMPORT)
        twice(p, item, before->item);
}

static void check_imports(TlProgram *p, const TlMod *m)
{
    for (uint32_t i = 0; i < m->defs.len; i++) {
        TlDef *def = m->defs.data[i];
        if (def->item->kind != TL_IT_IMPORT || !def->item->name)
            continue;
        TlDef *before = tl_mod_find(m, def->item->name);
        if (before == def || before->item->kind != TL_IT_IMPORT)
            continue;
        TlMod *a = before->import, *b = def->import;
        if (a && b && a != b)
            twice(p, def->item, before->item);
    }
}

/* Not a file of the same name. */
static bool is_library(const TlSource *source)
{
    size_t size;
    return source->text == tl_stdlib_find(source->path, &size);
}

TlMod *tl_module_open(TlProgram *p, uint32_t source, const char *path)
{
    TL_ASSERT(path && source < p->ctx->diags.sources.len, "source %u", source);
    TlArena *arena = &p->ctx->perm;
    TlMod *m = TL_NEW(arena, TlMod);
    m->path = path;
    m->state = TL_BUSY;
    tl_map_init(&m->names, arena);
    tl_vec_push(arena, &p->modules, m);
    tl_map_put_ptr(&p->by_path, tl_intern_str(&p->ctx->strings, path), m);
    TlSpanMark mark = tl_trace_begin(p->ctx->trace, "front end", path, "parse");
    const TlUnit *unit =
        is_library(&p->ctx->diags.sources.data[source]) ? tl_parse_heads(p->ctx, source)
                                                        : tl_parse(p->ctx, source);
    tl_trace_end(p->ctx->trace, mark);
    m->unit = unit;
    for (uint32_t i = 0; i < unit->items.len; i++)
        bind_item(p, m, unit->items.data[i]);
    for (uint32_t i = 0; i < m->defs.len; i++)
        if (m->defs.data[i]->item->kind == TL_IT_IMPORT)
            m->defs.data[i]->import = import_module(p, m, m->defs.data[i]->item);
    check_imports(p, m);
    m->state = TL_DONE;
    return m;
}

TlMod *tl_mod_std(TlProgram *p, const char *name)
{
    TL_ASSERT(!strncmp(name, "std.", 4), "%s is no module of the library", name);
    TlMod *m = find_module(p, name);
    size_t size;
    const char *text = m ? NULL : tl_stdlib_find(name, &size);
    return text ? tl_module_open(p, tl_diags_source(&p->ctx->diags, name, text, size), name) : m;
}
