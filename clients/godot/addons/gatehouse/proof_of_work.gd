# SPDX-License-Identifier: Apache-2.0
extends RefCounted
## Solves the puzzle that a service under attack sets before it creates a guest.

const FRAME := 8  # milliseconds of work in each frame, so that the game does not stop
const MOST_PARTS := 64
const MOST_BITS := 32


## The numbers, separated by dots; "" for a puzzle that cannot be solved, and once the game has cancelled.
static func solve(puzzle: Dictionary, tree: SceneTree, is_cancelled: Callable) -> String:
	var parts := int(puzzle.get("parts", 0))
	var bits := int(puzzle.get("difficulty", 0))
	if parts < 1 or parts > MOST_PARTS or bits < 0 or bits > MOST_BITS:
		return ""
	var input := _sha256(str(puzzle.get("puzzle", "")).to_utf8_buffer())
	input.resize(37)  # then one byte for the part, and four for the number
	var numbers := PackedStringArray()
	var frame_ends := Time.get_ticks_msec() + FRAME
	for part in parts:
		input[32] = part
		var number := 0
		_put(input, number)
		while not _has_zeros(_sha256(input), bits):
			number += 1
			_put(input, number)
			if Time.get_ticks_msec() >= frame_ends:
				await tree.process_frame
				if is_cancelled.call():
					return ""
				frame_ends = Time.get_ticks_msec() + FRAME
		numbers.append(str(number))
	return ".".join(numbers)


static func _sha256(bytes: PackedByteArray) -> PackedByteArray:
	var hashing := HashingContext.new()
	hashing.start(HashingContext.HASH_SHA256)
	hashing.update(bytes)
	return hashing.finish()


static func _put(input: PackedByteArray, number: int) -> void:
	input[33] = number >> 24
	input[34] = number >> 16 & 255
	input[35] = number >> 8 & 255
	input[36] = number & 255


static func _has_zeros(digest: PackedByteArray, bits: int) -> bool:
	var head := digest[0] << 24 | digest[1] << 16 | digest[2] << 8 | digest[3]
	return head >> (32 - bits) == 0
