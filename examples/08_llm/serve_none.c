/* Where libevent is not installed. */
#define PROGRAM "08_llm"
#include "../shared/example.h"
#include "serve.h"

bool serve(Checkpoint *checkpoint, const Serving *serving)
{
    (void)checkpoint, (void)serving;
    return fail("-S", "this program was built without libevent");
}
