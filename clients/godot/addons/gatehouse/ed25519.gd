# SPDX-License-Identifier: Apache-2.0
extends RefCounted
## Ed25519 signatures (RFC 8032), which Godot does not have.
##
## The same steps are taken for every key: no branch and no index depends on a secret. GDScript itself promises no
## constant time, so do not sign where others can measure it precisely, such as on a server. A signature takes a tenth
## of a second.
##
## A field element is 15 limbs of 17 bits, so 2^255 = 19 (mod p) carries from the last limb to the first. A point is X,
## Y, Z, T in extended coordinates. A number modulo L, the order of the base point, has the same limbs.

const Sha512 := preload("sha512.gd")

const LIMBS := 15
const BITS := 17
const MASK := 0x1ffff
const TWICE_D := "59f1b226949bd6eb56b183829a14e00030d1f3eef2808e19e7fcdf56dcd90624"
const BASE_X := "1ad5258f602d56c9b2a7259560c72c695cdcd6fd31e2a4c0fe536ecdd3366921"
const BASE_Y := "5866666666666666666666666666666666666666666666666666666666666666"
const BASE_T := "a3ddb7a5b38ade6df5525177809ff0207de3ab648e4eea6665768bd70f5f8767"
const ORDER := "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"

static var _twice_d := _limbs(TWICE_D.hex_decode())
static var _order := _limbs(ORDER.hex_decode())


static func public_key(seed_bytes: PackedByteArray) -> PackedByteArray:
	return _encoded(_times_base(_clamped(Sha512.digest(seed_bytes))))


## The 64 byte signature; `public` is the public key of this seed.
static func sign(seed_bytes: PackedByteArray, public: PackedByteArray, message: PackedByteArray) -> PackedByteArray:
	var secret := Sha512.digest(seed_bytes)
	var nonce := _modulo_order(Sha512.digest(secret.slice(32) + message))
	var commitment := _encoded(_times_base(_bytes(nonce)))
	var challenge := Sha512.digest(commitment + public + message)
	var product := _product_modulo_order(challenge, _modulo_order(_clamped(secret)))
	return commitment + _bytes(_sum_modulo_order(product, nonce))


static func _clamped(digest: PackedByteArray) -> PackedByteArray:
	var scalar := digest.slice(0, 32)
	scalar[0] &= 248
	scalar[31] = scalar[31] & 127 | 64
	return scalar


# -- Numbers modulo L --------------------------------------------------------------------------------------------------

static func _modulo_order(number: PackedByteArray) -> PackedInt64Array:
	var one := _zero()
	one[0] = 1
	return _product_modulo_order(number, one)


static func _product_modulo_order(number: PackedByteArray, factor: PackedInt64Array) -> PackedInt64Array:
	var product := _zero()
	for at in range(8 * number.size() - 1, -1, -1):
		var mask := -((number[at >> 3] >> (at & 7)) & 1)
		var addend := _zero()
		for limb in LIMBS:
			addend[limb] = factor[limb] & mask
		product = _sum_modulo_order(_sum_modulo_order(product, product), addend)
	return product


static func _sum_modulo_order(a: PackedInt64Array, b: PackedInt64Array) -> PackedInt64Array:
	var total := _zero()
	var less := _zero()
	var carry := 0
	var borrow := 0
	for limb in LIMBS:
		carry += a[limb] + b[limb]
		total[limb] = carry & MASK
		carry >>= BITS
		borrow += total[limb] - _order[limb]
		less[limb] = borrow & MASK
		borrow >>= BITS
	_choose(total, less, borrow + 1)
	return total


# -- Points ------------------------------------------------------------------------------------------------------------

static func _times_base(scalar: PackedByteArray) -> Array[PackedInt64Array]:
	var one := _zero()
	one[0] = 1
	var base: Array[PackedInt64Array] = [
		_limbs(BASE_X.hex_decode()), _limbs(BASE_Y.hex_decode()), one, _limbs(BASE_T.hex_decode())
	]
	var point: Array[PackedInt64Array] = [_zero(), one.duplicate(), one.duplicate(), _zero()]
	for at in range(255, -1, -1):
		point = _added(point, point)
		var other := _added(point, base)
		var bit := (scalar[at >> 3] >> (at & 7)) & 1
		for coordinate in 4:
			_choose(point[coordinate], other[coordinate], bit)
	return point


## The addition of RFC 8032, section 5.1.4. It also doubles, so there is no special case.
static func _added(p: Array[PackedInt64Array], q: Array[PackedInt64Array]) -> Array[PackedInt64Array]:
	var a := _product(_difference(p[1], p[0]), _difference(q[1], q[0]))
	var b := _product(_sum(p[1], p[0]), _sum(q[1], q[0]))
	var c := _product(_product(p[3], q[3]), _twice_d)
	var d := _product(_sum(p[2], p[2]), q[2])
	var e := _difference(b, a)
	var f := _difference(d, c)
	var g := _sum(d, c)
	var h := _sum(b, a)
	return [_product(e, f), _product(g, h), _product(f, g), _product(e, h)]


static func _encoded(point: Array[PackedInt64Array]) -> PackedByteArray:
	var inverse := _inverse(point[2])
	var encoded := _bytes(_reduced(_product(point[1], inverse)))
	encoded[31] |= (_reduced(_product(point[0], inverse))[0] & 1) << 7
	return encoded


# -- Field elements ----------------------------------------------------------------------------------------------------

static func _zero() -> PackedInt64Array:
	var zero := PackedInt64Array()
	zero.resize(LIMBS)
	return zero


static func _sum(a: PackedInt64Array, b: PackedInt64Array) -> PackedInt64Array:
	var total := a.duplicate()
	for limb in LIMBS:
		total[limb] += b[limb]
	return total


## a - b + 4p, which no limb can make negative.
static func _difference(a: PackedInt64Array, b: PackedInt64Array) -> PackedInt64Array:
	var rest := a.duplicate()
	for limb in LIMBS:
		rest[limb] += 4 * MASK - b[limb]
	rest[0] -= 4 * 18
	return rest


static func _product(a: PackedInt64Array, b: PackedInt64Array) -> PackedInt64Array:
	var low := _zero()
	var high := _zero()
	for i in LIMBS:
		var factor := a[i]
		for j in LIMBS - i:
			low[i + j] += factor * b[j]
		for j in range(LIMBS - i, LIMBS):
			high[i + j - LIMBS] += factor * b[j]
	for limb in LIMBS:
		low[limb] += 19 * high[limb]
	return _carried(low)


static func _carried(a: PackedInt64Array) -> PackedInt64Array:
	var carry := 0
	for limb in LIMBS:
		carry += a[limb]
		a[limb] = carry & MASK
		carry >>= BITS
	carry = a[0] + 19 * carry
	a[0] = carry & MASK
	a[1] += carry >> BITS
	return a


## The only representation below p.
static func _reduced(a: PackedInt64Array) -> PackedInt64Array:
	a = _carried(_carried(a))
	var carry := 19  # a + 19 reaches 2^255 exactly if a reaches p
	for limb in LIMBS:
		carry = (a[limb] + carry) >> BITS
	a[0] += 19 * carry
	carry = 0
	for limb in LIMBS:
		carry += a[limb]
		a[limb] = carry & MASK
		carry >>= BITS
	return a


## a^(p - 2); the bits of p - 2 are all set, except 2 and 4.
static func _inverse(a: PackedInt64Array) -> PackedInt64Array:
	var power := a.duplicate()
	for bit in range(253, -1, -1):
		power = _product(power, power)
		if bit != 2 and bit != 4:
			power = _product(power, a)
	return power


## Replaces a by b if `bit` is 1.
static func _choose(a: PackedInt64Array, b: PackedInt64Array, bit: int) -> void:
	for limb in LIMBS:
		a[limb] ^= -bit & (a[limb] ^ b[limb])


static func _limbs(bytes: PackedByteArray) -> PackedInt64Array:
	var limbs := _zero()
	for bit in LIMBS * BITS:
		limbs[bit / BITS] |= ((bytes[bit >> 3] >> (bit & 7)) & 1) << (bit % BITS)
	return limbs


static func _bytes(limbs: PackedInt64Array) -> PackedByteArray:
	var bytes := PackedByteArray()
	bytes.resize(32)
	for bit in LIMBS * BITS:
		bytes[bit >> 3] |= ((limbs[bit / BITS] >> (bit % BITS)) & 1) << (bit & 7)
	return bytes
