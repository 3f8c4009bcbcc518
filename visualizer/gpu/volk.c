/* gpu/volk.c - the one place where volk's code is compiled in. It finds libvulkan.so.1 at run time, so that the program
 * starts, and records, where there is none. */
#define VOLK_IMPLEMENTATION
#include <volk.h>
