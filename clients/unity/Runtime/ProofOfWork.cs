// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.Linq;
using System.Security.Cryptography;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using UnityEngine;

namespace Gatehouse
{
    /// <summary>Solves the puzzle that a service under attack sets before it creates a guest.</summary>
    internal static class ProofOfWork
    {
        private const double Frame = 0.008; // seconds of work in each frame, so that the game does not stop
        private const int MostParts = 64;
        private const int MostBits = 31;

        /// <summary>
        /// The numbers, separated by dots; "" for a puzzle that cannot be solved, and once the game has cancelled.
        /// </summary>
        public static async Task<string> Solve(Dictionary<string, object> puzzle, CancellationToken cancel)
        {
            long parts = Json.Whole(puzzle, "parts"), bits = Json.Whole(puzzle, "difficulty");
            if (parts < 1 || parts > MostParts || bits > MostBits)
            {
                return "";
            }
            var numbers = new uint[parts];
            using (SHA256 sha256 = SHA256.Create())
            {
                byte[] seed = sha256.ComputeHash(Encoding.UTF8.GetBytes(Json.Text(puzzle, "puzzle")));
                double frameEnds = Time.realtimeSinceStartupAsDouble + Frame;
                for (byte part = 0; part < parts; part++)
                {
                    while (!Solves(sha256, seed, part, numbers[part], (int)bits))
                    {
                        numbers[part]++;
                        if (Time.realtimeSinceStartupAsDouble >= frameEnds)
                        {
                            await WebRequests.NextFrame();
                            frameEnds = Time.realtimeSinceStartupAsDouble + Frame;
                        }
                        if (cancel.IsCancellationRequested)
                        {
                            return "";
                        }
                    }
                }
            }
            return string.Join(".", numbers.Select(number => number.ToString()));
        }

        private static bool Solves(SHA256 sha256, byte[] seed, byte part, uint number, int bits)
        {
            var input = new byte[37];
            Array.Copy(seed, input, 32);
            input[32] = part;
            for (int at = 0; at < 4; at++)
            {
                input[33 + at] = (byte)(number >> (24 - 8 * at));
            }
            byte[] digest = sha256.ComputeHash(input);
            uint head = ((uint)digest[0] << 24) | ((uint)digest[1] << 16) | ((uint)digest[2] << 8) | digest[3];
            return bits == 0 || head >> (32 - bits) == 0;
        }
    }
}
