// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.Security.Cryptography;
using System.Text;

namespace Gatehouse
{
    /// <summary>The stored key of a guest. It is made once, for each service.</summary>
    internal sealed class DeviceKey
    {
        private const string PrivateName = "device_key";
        private const string PublicName = "public_key";
        private const int Length = 32; // bytes
        private readonly byte[] seed;
        private readonly byte[] publicKey;

        private DeviceKey(byte[] seed, byte[] publicKey)
        {
            this.seed = seed;
            this.publicKey = publicKey;
        }

        public string PublicText
        {
            get { return Convert.ToBase64String(publicKey); }
        }

        public static bool Exists(GatehouseStorage storage, string baseUrl)
        {
            return storage.Read(baseUrl, PrivateName) != "";
        }

        public static DeviceKey Load(GatehouseStorage storage, string baseUrl)
        {
            if (!Exists(storage, baseUrl))
            {
                byte[] made = RandomBytes(Length);
                storage.Write(baseUrl, PublicName, Convert.ToBase64String(Ed25519.PublicKey(made)));
                storage.Write(baseUrl, PrivateName, Convert.ToBase64String(made));
            }
            byte[] seed = Convert.FromBase64String(storage.Read(baseUrl, PrivateName));
            return new DeviceKey(seed, Convert.FromBase64String(storage.Read(baseUrl, PublicName)));
        }

        public static void Remove(GatehouseStorage storage, string baseUrl)
        {
            storage.Write(baseUrl, PrivateName, "");
            storage.Write(baseUrl, PublicName, "");
        }

        /// <summary>Adds the fields that prove the key.</summary>
        public void Sign(string challenge, IDictionary<string, object> asked)
        {
            asked["device_key"] = PublicText;
            asked["challenge"] = challenge;
            asked["signature"] = Convert.ToBase64String(Ed25519.Sign(seed, publicKey, Encoding.UTF8.GetBytes(challenge)));
        }

        public static byte[] RandomBytes(int count)
        {
            var bytes = new byte[count];
            using (RandomNumberGenerator random = RandomNumberGenerator.Create())
            {
                random.GetBytes(bytes);
            }
            return bytes;
        }
    }
}
