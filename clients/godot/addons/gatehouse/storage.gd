# SPDX-License-Identifier: Apache-2.0
extends RefCounted
## What the game keeps on this device, for each service: the device factor, the device key, the session.
##
## It is a file in `user://` that only the player's account of the operating system can read. It is not encrypted: a key
## beside it would protect nothing. Override `read` and `write` to use a keychain.

const PATH := "user://gatehouse.cfg"


## The value, or "" if there is none.
func read(base_url: String, name: String) -> String:
	return str(_file().get_value(base_url, name, ""))


## Stores the value; "" removes it.
func write(base_url: String, name: String, value: String) -> void:
	var file := _file()
	file.set_value(base_url, name, null if value == "" else value)
	if not FileAccess.file_exists(PATH):
		FileAccess.open(PATH, FileAccess.WRITE)
	if OS.get_name() not in ["Windows", "Web"]:
		FileAccess.set_unix_permissions(PATH, FileAccess.UNIX_READ_OWNER | FileAccess.UNIX_WRITE_OWNER)
	file.save(PATH)


func _file() -> ConfigFile:
	var file := ConfigFile.new()
	if FileAccess.file_exists(PATH):
		file.load(PATH)
	return file
