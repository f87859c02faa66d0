// SPDX-License-Identifier: Apache-2.0

using System.Linq;
using System.Security.Cryptography;

namespace Gatehouse
{
    /// <summary>
    /// Ed25519 signatures (RFC 8032), which .NET does not have. The same steps are taken for every key: no branch and no index
    /// depends on a secret. The runtime itself promises no constant time, so do not sign where others can measure it
    /// precisely, such as on a server.
    ///
    /// A field element is 15 limbs of 17 bits, so 2^255 = 19 (mod p) carries from the last limb to the first. A point is X,
    /// Y, Z, T in extended coordinates. A number modulo L, the order of the base point, has the same limbs.
    /// </summary>
    internal static class Ed25519
    {
        private const int Limbs = 15;
        private const int Bits = 17;
        private const long Mask = 0x1ffff;

        private static readonly long[] Zero = new long[Limbs];
        private static readonly long[] One = FromHex("01");
        private static readonly long[] TwiceD = FromHex("59f1b226949bd6eb56b183829a14e00030d1f3eef2808e19e7fcdf56dcd90624");
        private static readonly long[] Order = FromHex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
        private static readonly long[][] Base =
        {
            FromHex("1ad5258f602d56c9b2a7259560c72c695cdcd6fd31e2a4c0fe536ecdd3366921"),
            FromHex("5866666666666666666666666666666666666666666666666666666666666666"),
            One,
            FromHex("a3ddb7a5b38ade6df5525177809ff0207de3ab648e4eea6665768bd70f5f8767"),
        };

        public static byte[] PublicKey(byte[] seed)
        {
            return Encoded(TimesBase(Clamped(Digest(seed))));
        }

        /// <summary>The 64 byte signature; publicKey is that of this seed.</summary>
        public static byte[] Sign(byte[] seed, byte[] publicKey, byte[] message)
        {
            byte[] secret = Digest(seed);
            long[] nonce = ModuloOrder(Digest(secret.Skip(32).Concat(message).ToArray()));
            byte[] commitment = Encoded(TimesBase(Bytes(nonce)));
            byte[] challenge = Digest(commitment.Concat(publicKey).Concat(message).ToArray());
            long[] product = ProductModuloOrder(challenge, ModuloOrder(Clamped(secret)));
            return commitment.Concat(Bytes(SumModuloOrder(product, nonce))).ToArray();
        }

        private static byte[] Digest(byte[] message)
        {
            using (SHA512 sha512 = SHA512.Create())
            {
                return sha512.ComputeHash(message);
            }
        }

        private static byte[] Clamped(byte[] digest)
        {
            byte[] scalar = digest.Take(32).ToArray();
            scalar[0] &= 248;
            scalar[31] = (byte)((scalar[31] & 127) | 64);
            return scalar;
        }

        // Numbers modulo L

        private static long[] ModuloOrder(byte[] number)
        {
            return ProductModuloOrder(number, One);
        }

        private static long[] ProductModuloOrder(byte[] number, long[] factor)
        {
            long[] product = Zero;
            for (int at = 8 * number.Length - 1; at >= 0; at--)
            {
                long mask = -Bit(number, at);
                product = SumModuloOrder(product, product);
                product = SumModuloOrder(product, factor.Select(limb => limb & mask).ToArray());
            }
            return product;
        }

        private static long[] SumModuloOrder(long[] a, long[] b)
        {
            long[] total = new long[Limbs], less = new long[Limbs];
            long carry = 0, borrow = 0;
            for (int limb = 0; limb < Limbs; limb++)
            {
                carry += a[limb] + b[limb];
                total[limb] = carry & Mask;
                carry >>= Bits;
                borrow += total[limb] - Order[limb];
                less[limb] = borrow & Mask;
                borrow >>= Bits;
            }
            Choose(total, less, borrow + 1);
            return total;
        }

        // Points

        private static long[][] TimesBase(byte[] scalar)
        {
            long[][] point = { Zero, One, One, Zero };
            for (int at = 255; at >= 0; at--)
            {
                point = Added(point, point);
                long[][] other = Added(point, Base);
                for (int coordinate = 0; coordinate < 4; coordinate++)
                {
                    Choose(point[coordinate], other[coordinate], Bit(scalar, at));
                }
            }
            return point;
        }

        /// <summary>The addition of RFC 8032, section 5.1.4. It also doubles, so there is no special case.</summary>
        private static long[][] Added(long[][] p, long[][] q)
        {
            long[] a = Product(Difference(p[1], p[0]), Difference(q[1], q[0]));
            long[] b = Product(Sum(p[1], p[0]), Sum(q[1], q[0]));
            long[] c = Product(Product(p[3], q[3]), TwiceD);
            long[] d = Product(Sum(p[2], p[2]), q[2]);
            long[] e = Difference(b, a), f = Difference(d, c), g = Sum(d, c), h = Sum(b, a);
            return new[] { Product(e, f), Product(g, h), Product(f, g), Product(e, h) };
        }

        private static byte[] Encoded(long[][] point)
        {
            long[] inverse = Inverse(point[2]);
            byte[] encoded = Bytes(Reduced(Product(point[1], inverse)));
            encoded[31] |= (byte)((Reduced(Product(point[0], inverse))[0] & 1) << 7);
            return encoded;
        }

        // Field elements

        private static long[] Sum(long[] a, long[] b)
        {
            var total = new long[Limbs];
            for (int limb = 0; limb < Limbs; limb++)
            {
                total[limb] = a[limb] + b[limb];
            }
            return total;
        }

        /// <summary>a - b + 4p, which no limb can make negative.</summary>
        private static long[] Difference(long[] a, long[] b)
        {
            var rest = new long[Limbs];
            for (int limb = 0; limb < Limbs; limb++)
            {
                rest[limb] = a[limb] + 4 * Mask - b[limb];
            }
            rest[0] -= 4 * 18;
            return rest;
        }

        private static long[] Product(long[] a, long[] b)
        {
            long[] low = new long[Limbs], high = new long[Limbs];
            for (int i = 0; i < Limbs; i++)
            {
                for (int j = 0; j < Limbs - i; j++)
                {
                    low[i + j] += a[i] * b[j];
                }
                for (int j = Limbs - i; j < Limbs; j++)
                {
                    high[i + j - Limbs] += a[i] * b[j];
                }
            }
            for (int limb = 0; limb < Limbs; limb++)
            {
                low[limb] += 19 * high[limb];
            }
            return Carried(low);
        }

        private static long[] Carried(long[] a)
        {
            long carry = Spread(a);
            carry = a[0] + 19 * carry;
            a[0] = carry & Mask;
            a[1] += carry >> Bits;
            return a;
        }

        /// <summary>Carries from limb to limb, and returns what is left above the last.</summary>
        private static long Spread(long[] a)
        {
            long carry = 0;
            for (int limb = 0; limb < Limbs; limb++)
            {
                carry += a[limb];
                a[limb] = carry & Mask;
                carry >>= Bits;
            }
            return carry;
        }

        /// <summary>The only representation below p.</summary>
        private static long[] Reduced(long[] a)
        {
            Carried(Carried(a));
            long carry = 19; // a + 19 reaches 2^255 exactly if a reaches p
            for (int limb = 0; limb < Limbs; limb++)
            {
                carry = (a[limb] + carry) >> Bits;
            }
            a[0] += 19 * carry;
            Spread(a);
            return a;
        }

        /// <summary>a^(p - 2); the bits of p - 2 are all set, except 2 and 4.</summary>
        private static long[] Inverse(long[] a)
        {
            long[] power = a;
            for (int bit = 253; bit >= 0; bit--)
            {
                power = Product(power, power);
                power = bit == 2 || bit == 4 ? power : Product(power, a);
            }
            return power;
        }

        /// <summary>Replaces a by b if bit is 1.</summary>
        private static void Choose(long[] a, long[] b, long bit)
        {
            for (int limb = 0; limb < Limbs; limb++)
            {
                a[limb] ^= -bit & (a[limb] ^ b[limb]);
            }
        }

        private static long Bit(byte[] number, int at)
        {
            return (number[at >> 3] >> (at & 7)) & 1;
        }

        private static long[] FromHex(string hex)
        {
            var limbs = new long[Limbs];
            for (int bit = 0; bit < 4 * hex.Length && bit < Limbs * Bits; bit++)
            {
                int digit = "0123456789abcdef".IndexOf(hex[(bit >> 3 << 1) + 1 - (bit >> 2 & 1)]);
                limbs[bit / Bits] |= (long)(digit >> (bit & 3) & 1) << (bit % Bits);
            }
            return limbs;
        }

        private static byte[] Bytes(long[] limbs)
        {
            var bytes = new byte[32];
            for (int bit = 0; bit < Limbs * Bits; bit++)
            {
                bytes[bit >> 3] |= (byte)((limbs[bit / Bits] >> (bit % Bits) & 1) << (bit & 7));
            }
            return bytes;
        }
    }
}
