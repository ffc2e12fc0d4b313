/* folder_guard.h - keeps a run from writing outside its folder.
 *
 * The folder of a run may lie where other users can write, and a run lasts for days. Who replaces
 * the folder, or a folder in it, by a symbolic link, must not make the run write elsewhere.
 */
#ifndef AT_BASE_FOLDER_GUARD_H
#define AT_BASE_FOLDER_GUARD_H

/* From now on files below `folder`, which must exist, are only created while it is the folder that
 * it is now. Replaces an earlier guard; NULL: none. */
void at_folder_guard_set(const char *folder);

/* 0 when a file may be created at `path`; ELOOP when a symbolic link is in its place or in that of
 * a folder below the guarded one, or when another folder is in the place of that. */
int at_folder_guard_check(const char *path);

#endif
