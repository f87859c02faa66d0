# SPDX-License-Identifier: Apache-2.0
@tool
extends EditorPlugin
## Adds the autoload `Gatehouse` while the plugin is enabled.

const AUTOLOAD := "Gatehouse"


func _enable_plugin() -> void:
	add_autoload_singleton(AUTOLOAD, "res://addons/gatehouse/gatehouse.gd")


func _disable_plugin() -> void:
	remove_autoload_singleton(AUTOLOAD)
