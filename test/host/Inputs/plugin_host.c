/* plugin_host PLUGIN...: loads each, uses it and unloads it. The last line is "done", after a child
 * that was forked with the last plugin loaded has used it, too, and has ended. */
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static float x[1 << 16], y[2 << 16];

static int use(void *plugin)
{
    int (*work)(float *, float *, int) = (int (*)(float *, float *, int))dlsym(plugin, "work");
    x[5] = 3;
    y[5] = 0;
    int status = work(x, y, 1 << 16);
    printf("status %d, y = %g\n", status, y[5]);
    fflush(stdout);
    return status;
}

int main(int argc, char **argv)
{
    int status = 0;
    for (int i = 1; i < argc; i++) {
        void *plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!plugin)
            return puts(dlerror()), 1;
        use(plugin);
        if (i == argc - 1 && fork() == 0) { /* the plugin's own stream is the parent's */
            alarm(60);
            use(plugin);
            return dlclose(plugin);
        }
        dlclose(plugin);
        usleep(20000);
        if (dlopen(argv[i], RTLD_NOW | RTLD_NOLOAD))
            puts("it is still there");
    }
    wait(&status);
    return status != 0 || puts("done") < 0;
}
