/* fake_mpi.h - what of mpi_comm.h needs no messages, for programs that simulate MPI. They define
 * struct at_mpi_calls and the calls themselves. */
#ifndef AT_TESTS_UNIT_WORLD_FAKE_MPI_H
#define AT_TESTS_UNIT_WORLD_FAKE_MPI_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "world/mpi/mpi_comm.h"

void at_mpi_calls_free(at_mpi_calls *calls)
{
    free(calls);
}

bool at_mpi_calls_end(at_mpi_calls *calls)
{
    (void)calls;
    return true;
}

at_err at_mpi_check(int code, const char *call, at_fail *fail)
{
    return code == 0 ? AT_OK : at_fail_set(fail, AT_ERR_FAILED, NULL, "MPI failed in %s", call);
}

at_err at_mpi_start(const at_launcher *launcher, at_fail *fail)
{
    (void)launcher;
    (void)fail;
    return AT_OK;
}

bool at_mpi_is_started(void)
{
    return true;
}

void at_mpi_finish(void)
{
}

void at_mpi_abort(int code)
{
    fail_msg("aborted with %d", code);
}

void at_mpi_host(char name[AT_HOST_NAME_SIZE])
{
    snprintf(name, AT_HOST_NAME_SIZE, "here");
}

void *at_mpi_alloc(size_t size, size_t likely)
{
    (void)likely;
    return malloc(size);
}

#endif
