// SPDX-License-Identifier: Apache-2.0

using UnityEngine;

namespace Gatehouse
{
    /// <summary>
    /// What the game keeps on this device, for each service: the device factor, the device key, the session.
    /// PlayerPrefs is not encrypted: other programs of the player can read it. Override both methods to use the keychain of
    /// the platform.
    /// </summary>
    public class GatehouseStorage
    {
        /// <summary>The value, or "" if there is none.</summary>
        public virtual string Read(string baseUrl, string name)
        {
            return PlayerPrefs.GetString(Key(baseUrl, name), "");
        }

        /// <summary>Stores the value; "" removes it.</summary>
        public virtual void Write(string baseUrl, string name, string value)
        {
            if (value == "")
            {
                PlayerPrefs.DeleteKey(Key(baseUrl, name));
            }
            else
            {
                PlayerPrefs.SetString(Key(baseUrl, name), value);
            }
            PlayerPrefs.Save();
        }

        private static string Key(string baseUrl, string name)
        {
            return "gatehouse " + baseUrl + " " + name;
        }
    }
}
