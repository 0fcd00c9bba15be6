#ifndef BASE_BANNED_H
#define BASE_BANNED_H

/*
 * Functions that this project does not use, because each has a safer twin. Included last by every
 * .c file, so that using one of them is a compile error.
 */

#undef strcpy
#undef strcat
#undef strncpy
#undef sprintf
#undef vsprintf
#undef strtok
#undef gmtime
#undef localtime
#undef atoi
#undef atol
#undef gets

#pragma GCC poison strcpy strcat strncpy sprintf vsprintf strtok gmtime localtime atoi atol gets

#endif
