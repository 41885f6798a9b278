/* ok.h: unit tests of the runtime's interface: a call that is to succeed, or else says why not. */
#ifndef TL_TEST_OK_H
#define TL_TEST_OK_H
#include "runtime/include/tile.h"
#include "test/unit/unit.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        tile_status status_ = (call);                                                              \
        if (!CHECK(status_ == TILE_OK))                                                            \
            fprintf(stderr, "    %s\n", tile_last_error());                                        \
    } while (0)
#endif
