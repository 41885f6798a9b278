/* How diagnostics are shown: carets under tabs and characters of all widths, long lines,
 * colours, JSON, SARIF. */
#include "ir/support/diag.h"
#include "test/unit/unit.h"
#include <stdlib.h>

static TlArena arena;

static uint32_t start(TlDiags *d, const char *text)
{
    tl_diags_init(d, &arena);
    return tl_diags_source(d, "dir/a b.tile", text, strlen(text));
}

static const char *render(TlDiags *d, TlDiagFormat format, bool color)
{
    TlSbuf s;
    tl_sbuf_init(&s, &arena);
    tl_diags_render(d, format, color, &s);
    return s.text;
}

/* One error at the first '@' of the text (which is taken out), over `len` bytes; the two lines
 * under the heading. */
static const char *snippet(const char *marked, uint32_t len)
{
    char text[2000];
    const char *at = strchr(marked, '@'), *line;
    TlDiags d;
    snprintf(text, sizeof text, "%.*s%s", (int)(at - marked), marked, at + 1);
    uint32_t f = start(&d, text);
    tl_diag(&d, (TlLoc){f, 1, (uint32_t)(at - marked) + 1, len}, TL_E0801, "x");
    line = strchr(render(&d, TL_DIAG_TEXT, false), '\n') + 1;
    return line;
}

static void carets(void)
{
    CHECK_STR(snippet("ab@cd e", 2), "    1 | abcd e\n      |   ^~\n");
    CHECK_STR(snippet("@", 1), ""); /* an empty source has no line to show */
    CHECK_STR(snippet("ab@", 5), "    1 | ab\n      |   ^\n");
    CHECK_STR(snippet("ab@cd", 50), "    1 | abcd\n      |   ^~\n");
    CHECK_STR(snippet("\t@x", 1), "    1 |     x\n      |     ^\n");
    CHECK_STR(snippet("ab\t@x", 1), "    1 | ab  x\n      |     ^\n");
    CHECK_STR(snippet("@a\tb", 3), "    1 | a   b\n      | ^~~~~\n");
    CHECK_STR(snippet("\xC3\xA9@x", 1), "    1 | \xC3\xA9x\n      |  ^\n");
    CHECK_STR(snippet("@\xC3\xA9x", 2), "    1 | \xC3\xA9x\n      | ^\n");
    CHECK_STR(snippet("e\xCC\x81@x", 1), "    1 | e\xCC\x81x\n      |  ^\n");
    CHECK_STR(snippet("\xE4\xB8\xAD@\xE6\x96\x87x", 4),
              "    1 | \xE4\xB8\xAD\xE6\x96\x87x\n      |   ^~~\n");
    CHECK_STR(snippet("\xF0\x9F\x98\x80@x", 1), "    1 | \xF0\x9F\x98\x80x\n      |   ^\n");
    CHECK_STR(snippet("\xFF\xC3(\x1B[\xE2\x80\xAE@x", 1), "    1 | ?\?(?[?x\n      |       ^\n");
    CHECK_STR(snippet("@ab\r\ncd", 9), "    1 | ab\n      | ^~\n");
}

static void long_lines(void)
{
    char text[1000];
    const char *s, *dots;
    memset(text, 'a', sizeof text);
    text[500] = '@';
    text[sizeof text - 1] = 0;
    s = snippet(text, 3);
    CHECK(strlen(s) < 500);
    CHECK(!strncmp(s, "    1 | ...aaa", 14));
    dots = strstr(s + 12, "...\n");
    CHECK(dots != NULL);
    CHECK(dots && !strcmp(dots + strlen("...\n      | ") + 103, "^~~\n"));
    text[500] = 'a';
    text[0] = '@';
    s = snippet(text, 999);
    CHECK(!strncmp(s, "    1 | aaa", 11) && strlen(s) < 500);
}

static void many(void)
{
    TlDiags d;
    uint32_t f = start(&d, "x\n");
    for (uint32_t i = 1; i <= 21; i++)
        tl_diag(&d, (TlLoc){f, i, 1, 1}, TL_E0801, "x");
    CHECK_INT(d.rows.len, TL_DIAG_MAX);
    CHECK(strstr(render(&d, TL_DIAG_TEXT, false), "\n1 more error is not shown\n") != NULL);
    for (uint32_t i = 22; i <= 40; i++)
        tl_diag(&d, (TlLoc){f, i, 1, 1}, TL_E0801, "x");
    CHECK(strstr(render(&d, TL_DIAG_TEXT, false), "\n20 more errors are not shown\n") != NULL);
}

/* Whatever the order of arrival, the 20 nearest to the start are shown. */
static void first_in_the_source(void)
{
    TlDiags d;
    uint32_t f = start(&d, "x\n");
    for (uint32_t i = 50; i >= 1; i--)
        tl_diag(&d, (TlLoc){f, i, 1, 1}, TL_E0801, "x");
    tl_diags_sort(&d);
    CHECK_INT(d.errors, 50);
    CHECK_INT(d.rows.len, TL_DIAG_MAX);
    CHECK_INT(d.rows.data[0].loc.line, 1);
    CHECK_INT(d.rows.data[TL_DIAG_MAX - 1].loc.line, TL_DIAG_MAX);
}

static void fill(TlDiags *d)
{
    uint32_t f = start(d, "if (\xC3\xA9 = b)\n");
    TlDiag *row = tl_diag(d, (TlLoc){f, 1, 8, 1}, TL_E0801, "say \"x\\y\"\n\xFF");
    row->label = "label";
    row->fixit = "==";
    tl_diag_note(d, row, (TlLoc){f, 1, 5, 2}, "note");
    tl_diag_note(d, row, (TlLoc){0}, "nowhere");
    tl_diag(d, (TlLoc){0}, TL_E0801, "no place");
}

static void forms(void)
{
    TlDiags d;
    fill(&d);
    CHECK_STR(render(&d, TL_DIAG_TEXT, false), "error[E0801]: no place\n"
                                               "dir/a b.tile:1:8: error[E0801]: say \"x\\y\"??\n"
                                               "    1 | if (\xC3\xA9 = b)\n"
                                               "      |       ^ label\n"
                                               "      |       ==\n"
                                               "dir/a b.tile:1:5: note: note\n"
                                               "    1 | if (\xC3\xA9 = b)\n"
                                               "      |     ^\n"
                                               "note: nowhere\n");
    CHECK(!strncmp(render(&d, TL_DIAG_TEXT, true),
                   "\033[1m\033[1;31merror[E0801]:\033[0m\033[1m no place\033[0m\n", 40));
    CHECK_STR(render(&d, TL_DIAG_JSON, false),
              "{\"version\": 1, \"diagnostics\": [\n"
              "  {\"id\": \"E0801\", \"severity\": \"error\", \"message\": \"no place\"},\n"
              "  {\"id\": \"E0801\", \"severity\": \"error\", \"message\": \"say "
              "\\\"x\\\\y\\\"\\u000A\\uFFFD\", \"file\": "
              "\"dir/a b.tile\", \"line\": 1, \"column\": 8, \"length\": 1, \"label\": \"label\", "
              "\"fixit\": \"==\", "
              "\"notes\": [\n"
              "     {\"severity\": \"note\", \"message\": \"note\", \"file\": \"dir/a b.tile\", "
              "\"line\": 1, \"column\": 5, "
              "\"length\": 2},\n"
              "     {\"severity\": \"note\", \"message\": \"nowhere\"}]}],\n"
              " \"errors\": 2, \"warnings\": 0}\n");
    const char *sarif = render(&d, TL_DIAG_SARIF, false);
    CHECK(strstr(sarif, "\"uri\": \"dir/a%20b.tile\"}, \"region\": {\"startLine\": 1, "
                        "\"startColumn\": 7, \"endColumn\": 8}"));
    CHECK(strstr(sarif, "\"relatedLocations\": [\n      {\"physicalLocation\": "
                        "{\"artifactLocation\": {\"uri\": \"dir/a%20b.tile\"}, "
                        "\"region\": {\"startLine\": 1, \"startColumn\": 5, \"endColumn\": 6}}, "
                        "\"message\": {\"text\": \"note\"}}"));
    CHECK(strstr(sarif, "\"insertedContent\": {\"text\": \"==\"}"));
    TlDiags none;
    start(&none, "");
    CHECK_STR(render(&none, TL_DIAG_JSON, false),
              "{\"version\": 1, \"diagnostics\": [],\n \"errors\": 0, \"warnings\": 0}\n");
    CHECK(strstr(render(&none, TL_DIAG_SARIF, false), "\"results\": []"));
}

static void equal_rows_count_once(void)
{
    TlDiags d;
    uint32_t f = start(&d, "x\n"), i;
    tl_diag(&d, (TlLoc){f, 1, 1, 1}, TL_E0801, "x");
    CHECK_INT(d.errors, 1);
    CHECK_INT(d.warnings, 0);
    /* the same row again is no second error */
    for (i = 0; i < 3; i++)
        tl_diag(&d, (TlLoc){f, 1, 1, 1}, TL_E0801, "x");
    CHECK_INT(d.errors, 1);
}

int main(void)
{
    tl_arena_init(&arena, (TlAlloc){0});
    carets();
    long_lines();
    many();
    first_in_the_source();
    forms();
    equal_rows_count_once();
    tl_arena_free(&arena);
    return unit_result();
}
