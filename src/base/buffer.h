/* buffer.h - sizes of buffers. */
#ifndef AT_BASE_BUFFER_H
#define AT_BASE_BUFFER_H

/* The usual size; in fuzzing builds the other one, so that short inputs cross the end of a buffer,
 * and most of the time is not spent on clearing it. */
#ifdef ANYTIME_FUZZ
#define AT_BUFFER(usual, fuzzing) (fuzzing)
#else
#define AT_BUFFER(usual, fuzzing) (usual)
#endif

#endif
