/* .tune.json: a file written and read again, files that are damaged, and which results a device
 * takes. */
#include <stdlib.h>

#include "runtime/tune_select.h"
#include "test/unit/unit.h"

static const char GOOD[] =
    "{\n"
    "  \"format\": \"tile-tune\",\n"
    "  \"version\": 1,\n"
    "  \"results\": [\n"
    "    {\n"
    "      \"kernel\": \"gemm\",\n"
    "      \"constants\": \"T=f16\",\n"
    "      \"hash\": \"00ff\",\n"
    "      \"device\": {\"target\": \"cpu:x86-64-v3\", \"name\": \"A \\\"quoted\\\" CPU\", "
    "\"threads\": 2},\n"
    "      \"keys\": \"M N\",\n"
    "      \"bucket\": [-1, 12],\n"
    "      \"sizes\": [0, 4096],\n"
    "      \"best\": \"BM=64\",\n"
    "      \"how\": \"timed\",\n"
    "      \"tool\": \"tilec\",\n"
    "      \"times\": {\n"
    "        \"BM=8\": 12.5,\n"
    "        \"BM=64\": 7.25,\n"
    "        \"BM=128\": \"too large\"\n"
    "      }\n"
    "    }\n"
    "  ]\n"
    "}\n";

static tile_status parse(const char *text, size_t n, tl_tune_file *file, char *why)
{
    why[0] = 0;
    return tl_tune_parse(text, n, file, why, 256);
}

static void test_round_trip(void)
{
    tl_tune_file file;
    char why[256];
    if (!CHECK(parse(GOOD, strlen(GOOD), &file, why) == TILE_OK))
        return;
    CHECK(file.len == 1 && file.results[0].ntimes == 3);
    CHECK(file.results[0].bucket[0] == -1 && file.results[0].sizes[1] == 4096);
    CHECK_STR(file.results[0].device.name, "A \"quoted\" CPU");
    CHECK_STR(tl_tune_time_of(&file.results[0], "BM=128")->rejected, "too large");
    char *text = tl_tune_format(&file);
    CHECK_STR(text, GOOD);
    free(text);
    tl_tune_file_free(&file);
}

/* An older version wrote times as the host's locale has them. */
static void test_decimal_commas(void)
{
    tl_tune_file file;
    char why[256], old[sizeof GOOD];
    memcpy(old, GOOD, sizeof old);
    memcpy(strstr(old, "12.5,"), "12,5,", 5);
    memcpy(strstr(old, "7.25,"), "7,25,", 5);
    if (!CHECK(parse(old, strlen(old), &file, why) == TILE_OK))
        return;
    CHECK(tl_tune_time_of(&file.results[0], "BM=8")->us == 12.5);
    CHECK(tl_tune_time_of(&file.results[0], "BM=64")->us == 7.25);
    CHECK(file.results[0].bucket[1] == 12);
    char *text = tl_tune_format(&file);
    CHECK_STR(text, GOOD);
    free(text);
    tl_tune_file_free(&file);
}

static void add(tl_tune_file *file, const char *kernel, const char *target, const char *name,
                int threads, int bucket)
{
    tl_tune_result *r = tl_tune_add(file);
    r->kernel = strdup(kernel);
    r->constants = strdup("");
    r->hash = strdup("1");
    r->keys = strdup("N");
    r->how = strdup("timed");
    r->tool = strdup("t");
    snprintf(r->device.target, sizeof r->device.target, "%s", target);
    snprintf(r->device.name, sizeof r->device.name, "%s", name);
    r->device.threads = threads;
    r->nkeys = 1;
    r->bucket[0] = bucket;
    char config[32];
    snprintf(config, sizeof config, "B=%d", threads);
    tl_tune_add_time(r, "B=0")->us = 2;
    tl_tune_add_time(r, config)->us = 1;
    r->best = strdup(config);
}

/* The order in which results were added does not show. */
static void test_sorted(void)
{
    tl_tune_file a = {0}, b = {0};
    add(&a, "k", "ref", "", 0, 3);
    add(&a, "k", "cpu:x", "n", 16, 3);
    add(&a, "k", "cpu:x", "n", 2, 10);
    add(&a, "k", "cpu:x", "n", 2, 9);
    add(&b, "k", "cpu:x", "n", 2, 9);
    add(&b, "k", "cpu:x", "n", 2, 10);
    add(&b, "k", "cpu:x", "n", 16, 3);
    add(&b, "k", "ref", "", 0, 3);
    char *x = tl_tune_format(&a), *y = tl_tune_format(&b);
    CHECK_STR(x, y);
    free(x);
    free(y);
    tl_tune_file_free(&a);
    tl_tune_file_free(&b);
}

/* What others name their files does not make a file of ours unreadable. */
static void test_other_bytes(void)
{
    tl_tune_file a = {0}, b;
    char why[256];
    add(&a, "k", "ref", "", 1, 3);
    tl_tune_time *t = tl_tune_add_time(&a.results[0], "B=9");
    t->rejected = strdup("a\xff\xed\xa0\x80\xe2\x82\xac\"");
    char *text = tl_tune_format(&a);
    CHECK(parse(text, strlen(text), &b, why) == TILE_OK);
    CHECK_STR(tl_tune_time_of(&b.results[0], "B=9")->rejected,
              "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xe2\x82\xac\"");
    free(text);
    tl_tune_file_free(&a);
    tl_tune_file_free(&b);
}

/* Every byte changed, in several ways, and every beginning: a message or a file, never a crash. */
static void test_damaged(void)
{
    static const char with[] = {0, ' ', '"', '{', '}', '9', '-', 'x', (char)0xff, '\n'};
    size_t n = strlen(GOOD);
    char text[sizeof GOOD], why[256];
    tl_tune_file file;
    int refused = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof with; k++) {
            memcpy(text, GOOD, sizeof GOOD);
            text[i] = with[k];
            bool ok = parse(text, n, &file, why) == TILE_OK;
            CHECK(ok || (*why && file.len == 0));
            refused += !ok;
            tl_tune_file_free(&file);
        }
    CHECK(refused > (int)n);
    for (size_t i = 0; i + 2 < n; i++) {
        CHECK(parse(GOOD, i, &file, why) == TILE_IO && *why);
        tl_tune_file_free(&file);
    }
}

typedef struct Bad {
    const char *from, *to, *why;
} Bad;

static void test_messages(void)
{
    static const Bad bads[] = {
        {"\"tile-tune\"", "\"other\"", "not a file of tuning results"},
        {"\"version\": 1", "\"version\": 2", "it is of version 2, this program reads version 1"},
        {"\"M N\"", "\"M\"", "one number for each key"},
        {"[-1, 12]", "[-1, 99]", "'bucket' is not a whole number from -1 to 63"},
        {"7.25", "-7.25", "the time of 'BM=64' is neither a number nor a reason"},
        {"\"best\": \"BM=64\"", "\"best\": \"BM=65\"", "'best' has no time"},
        {"\"BM=8\": 12.5", "\"BM=64\": 12.5", "line 18: an object has two members of one name"},
        {"\"threads\": 2", "\"threads\": 2.5", "'threads' is not a whole number"},
        {"\"hash\": \"00ff\",", "", "'hash' is not a text"},
        {"  ]\n}\n", "  ]\n}\n}", "line 24: it is not JSON"},
    };
    for (size_t i = 0; i < sizeof bads / sizeof *bads; i++) {
        char text[sizeof GOOD + 64], why[256];
        const char *at = strstr(GOOD, bads[i].from);
        tl_tune_file file;
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - GOOD), GOOD, bads[i].to,
                 at + strlen(bads[i].from));
        CHECK(parse(text, strlen(text), &file, why) == TILE_IO);
        if (!CHECK(strstr(why, bads[i].why)))
            fprintf(stderr, "%s: %s\n", bads[i].to, why);
        tl_tune_file_free(&file);
    }
}

static void test_paths(void)
{
    static const char *const pairs[][2] = {{"a/gemm.tile", "a/gemm.tune.json"},
                                           {"gemm", "gemm.tune.json"},
                                           {"a.b/gemm", "a.b/gemm.tune.json"},
                                           {".tile", ".tile.tune.json"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *path = tl_tune_path(pairs[i][0]);
        CHECK_STR(path, pairs[i][1]);
        free(path);
    }
}

static void test_buckets(void)
{
    CHECK(tl_bucket(INT64_MIN) == -1 && tl_bucket(0) == -1 && tl_bucket(1) == 0);
    CHECK(tl_bucket(2) == 1 && tl_bucket(3) == 2 && tl_bucket(4) == 2 && tl_bucket(5) == 3);
    CHECK(tl_bucket(INT64_C(1) << 62) == 62 && tl_bucket(INT64_MAX) == 63);
    const int32_t want[2] = {5, 5}, a[2] = {4, 5}, b[2] = {6, 5}, c[2] = {5, 4}, d[2] = {5, 7};
    CHECK(tl_nearer(want, a, d, 2) && !tl_nearer(want, d, a, 2));
    CHECK(tl_nearer(want, a, b, 2) && tl_nearer(want, a, c, 2) && tl_nearer(want, c, b, 2));
    CHECK(!tl_nearer(want, a, a, 2));
}

/* The threads of the machine whose results are taken; 0: none; -1: of several. */
static int chosen(const tl_tune_file *file, const char *target, const char *name, int threads)
{
    tl_tune_rows rows = {.file = *file};
    tl_tune_device want = {.threads = threads};
    snprintf(want.target, sizeof want.target, "%s", target);
    snprintf(want.name, sizeof want.name, "%s", name);
    CHECK(tl_tune_select(&rows, &want, NULL) == TILE_OK);
    int found = 0;
    for (size_t i = 0; i < rows.len; i++) {
        int n = atoi(rows.data[i].configs[0] + 2);
        found = !found || found == n ? n : -1;
        CHECK(rows.data[i].nconfigs == 2);
        CHECK_STR(rows.data[i].configs[1], "B=0");
    }
    rows.file = (tl_tune_file){0};
    tl_tune_rows_free(&rows);
    return found;
}

static void test_nearest_machine(void)
{
    tl_tune_file file = {0};
    add(&file, "k", "cpu:v3", "AMD", 64, 3);
    add(&file, "k", "cpu:v3", "AMD", 2, 3);
    add(&file, "k", "cpu:v3", "AMD", 2, 9);
    add(&file, "k", "cpu:v3", "Intel", 8, 9);
    add(&file, "k", "cpu:v4", "AMD", 7, 9);
    CHECK(chosen(&file, "cpu:v3", "AMD", 2) == 2);
    CHECK(chosen(&file, "cpu:v3", "AMD", 4) == 2);
    CHECK(chosen(&file, "cpu:v3", "AMD", 48) == 64);
    CHECK(chosen(&file, "cpu:v3", "Intel", 64) == 8);
    CHECK(chosen(&file, "cpu:v3", "Other", 2) == 2);
    CHECK(chosen(&file, "cpu:v3", "", 0) == 64);
    CHECK(chosen(&file, "cpu:v2", "AMD", 2) == 0);
    CHECK(chosen(&file, "cpu:v4", "Intel", 2) == 7);
    CHECK(chosen(&file, "cpu:v4-vnni", "AMD", 2) == 7);
    CHECK(chosen(&file, "cpu:v40", "AMD", 7) == 0 && chosen(&file, "cpu:v", "AMD", 7) == 0);
    add(&file, "k", "cpu:v4-vnni", "Intel", 1, 9);
    CHECK(chosen(&file, "cpu:v4-vnni", "AMD", 7) == 1 && chosen(&file, "cpu:v4", "AMD", 1) == 7);
    tl_tune_file_free(&file);
}

int main(void)
{
    test_round_trip();
    test_decimal_commas();
    test_sorted();
    test_other_bytes();
    test_damaged();
    test_messages();
    test_paths();
    test_buckets();
    test_nearest_machine();
    return unit_result();
}
